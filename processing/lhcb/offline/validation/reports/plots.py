"""Figures of the checker's binned sums (the "histograms" object of its JSON), of one result or of two overlaid.

Bins of fewer than ten entries are not drawn. Error bars of rates are Wilson score intervals of 68.3 %; those of means
are standard errors of the mean; those of widths are width / sqrt(2 n). Needs matplotlib (extra `plot`).
"""

from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hltnode.processing.framework.statistics import wilson_interval
from hltnode.processing.lhcb.offline.validation.checker.binning import PARTICLE_BINNINGS, Binning
from hltnode.processing.lhcb.offline.validation.checker.particles import Float64Array
from hltnode.processing.lhcb.offline.validation.checker.residuals import DRAWN_TOGETHER, summary
from hltnode.processing.lhcb.offline.validation.checker.vertices import PV_BINNINGS

# Okabe and Ito's palette: distinguishable with any colour vision and in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_BACKGROUND = "#d9d9d9"
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.labelsize": 10,
    "axes.titlesize": 10,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "hltnode",
}
_PANEL = (3.9, 2.9)
# A rate or width of fewer entries has no significance, and its error bar hides the others.
_MIN_ENTRIES = 10
MARKERS = ("o", "s")

_LABELS = {
    "velo_eta25": r"VELO, $2<\eta<5$",
    "velo_ut": "VELO and UT",
    "long": "long",
    "long_from_b": "long from b",
    "electrons_long": "long electrons",
}

Result = tuple[str, dict[str, Any]]
"""Name and "histograms" object of a result."""


def svg_source(figure: Figure) -> str:
    """The figure as the address of an image that holds its own SVG."""
    buffer = BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{b64encode(buffer.getvalue()).decode()}"


def panels(n: int, columns: int = 3) -> tuple[Figure, list[Axes]]:
    """A figure of n panels, at most `columns` in a row."""
    with mpl.rc_context(STYLE):
        columns = 2 if n == 4 else min(n, columns)
        rows = -(-n // columns)
        figure = Figure(figsize=(_PANEL[0] * columns, _PANEL[1] * rows), layout="constrained")
        axes = [figure.add_subplot(rows, columns, i + 1) for i in range(n)]
    return figure, axes


def axis_title(title: str, unit: str) -> str:
    """Label of an axis with its unit."""
    return f"{title} [{unit}]" if unit else title


def efficiency_figure(results: Sequence[Result], stage: str) -> Figure:
    """Efficiency of each category against p, pt, eta, phi and number of vertices; the spectrum of long ones in grey."""
    return _category_figure(results, stage, "efficiency", "reconstructed", "reconstructible")


def clone_figure(results: Sequence[Result], stage: str) -> Figure:
    """Clone rate: further tracks of a particle / all tracks that match one."""
    return _category_figure(results, stage, "clone rate", "clones", "tracks")


def _category_figure(results: Sequence[Result], stage: str, title: str, part: str, whole: str) -> Figure:
    figure, axes = panels(len(PARTICLE_BINNINGS))
    for axis, variable in zip(axes, PARTICLE_BINNINGS, strict=True):
        drawn = []
        for number, (result, name, counts) in _curves(results, stage, variable):
            rate, low, high = _rate(counts[part], counts[whole])
            shown = np.array(counts[whole]) >= _MIN_ENTRIES
            drawn += [low[shown], high[shown]]
            _points(axis, counts, np.where(shown, rate, np.nan), low, high, number, _label(results, result, name))
        _format_axes(axis, PARTICLE_BINNINGS[variable], title, drawn, top=title == "efficiency")
        _spectrum(axis, results, stage, variable)
    _legend(figure, axes)
    return figure


def purity_figure(results: Sequence[Result], stage: str) -> Figure:
    """Mean hit purity of the tracks that match a particle, and its standard error."""
    return _mean_figure(results, stage, "purity", "hit purity")


def hit_efficiency_figure(results: Sequence[Result], stage: str) -> Figure:
    """Mean hit efficiency of the tracks that match a particle, and its standard error."""
    return _mean_figure(results, stage, "hit_efficiency", "hit efficiency")


def _mean_figure(results: Sequence[Result], stage: str, quantity: str, title: str) -> Figure:
    figure, axes = panels(len(PARTICLE_BINNINGS))
    for axis, variable in zip(axes, PARTICLE_BINNINGS, strict=True):
        drawn = []
        for number, (result, name, counts) in _curves(results, stage, variable):
            n = np.array(counts["tracks"], dtype=np.float64)
            n[n < _MIN_ENTRIES] = np.nan
            mean = np.array(counts[f"{quantity}_sum"]) / n
            error = np.sqrt(np.maximum(np.array(counts[f"{quantity}_squares"]) / n - mean**2, 0) / n)
            drawn += [mean - error, mean + error]
            _points(axis, counts, mean, mean - error, mean + error, number, _label(results, result, name))
        _format_axes(axis, PARTICLE_BINNINGS[variable], title, drawn, top=True)
    _legend(figure, axes)
    return figure


def vertex_efficiency_figure(results: Sequence[Result]) -> Figure:
    """Efficiency of isolated and close collisions against their tracks, z, and number in the event."""
    figure, axes = panels(len(PV_BINNINGS))
    for axis, (variable, binning) in zip(axes, PV_BINNINGS.items(), strict=True):
        drawn = []
        for number, (result, histograms) in enumerate(results):
            for kind, (name, of_kind) in enumerate(histograms.get("pv", {}).items()):
                counts = of_kind[variable]
                rate, low, high = _rate(counts["reconstructed"], counts["reconstructible"])
                shown = np.array(counts["reconstructible"]) >= _MIN_ENTRIES
                drawn += [low[shown], high[shown]]
                label = name if len(results) == 1 else f"{name}, {result}"
                _points(axis, counts, np.where(shown, rate, np.nan), low, high, (kind, number), label)
        _format_axes(axis, binning, "efficiency", drawn, top=True)
    _legend(figure, axes)
    return figure


def ghost_figure(results: Sequence[Result], stage: str) -> Figure:
    """Ghost rate against all columns of the tracks of the stage, and the number of vertices."""
    variables = [name for name in PARTICLE_BINNINGS if name in results[0][1]["stages"][stage]["tracks"]]
    figure, axes = panels(len(variables))
    for axis, variable in zip(axes, variables, strict=True):
        drawn = []
        for number, (result, histograms) in enumerate(results):
            counts = histograms["stages"].get(stage, {}).get("tracks", {}).get(variable)
            if counts is not None:
                rate, low, high = _rate(counts["ghosts"], counts["tracks"])
                shown = np.array(counts["tracks"]) >= _MIN_ENTRIES
                drawn += [low[shown], high[shown]]
                _points(axis, counts, np.where(shown, rate, np.nan), low, high, (number, number), result)
        of = "" if variable == "n_pvs" else "track "
        _format_axes(axis, PARTICLE_BINNINGS[variable], "ghost rate", drawn, top=False, of=of)
    _legend(figure, axes, single=len(results) == 1)
    return figure


def width_figure(results: Sequence[Result], stage: str, names: Sequence[str]) -> Figure:
    """Width (half of the central 68.3 %) of residuals or pulls against their variable."""
    figure, axes = panels(len(names))
    for axis, name in zip(axes, names, strict=True):
        for number, (result, histograms) in enumerate(results):
            residual = histograms["residuals"].get(stage, {}).get(name)
            if residual is None:
                continue
            found = [summary(np.array(row), residual["limit"]) for row in residual["counts"]]
            shown = np.array([(row["entries"] or 0) >= _MIN_ENTRIES for row in found])
            width, error = (
                np.where(shown, np.array([row[key] for row in found], dtype=np.float64), np.nan)
                for key in ("width", "width_error")
            )
            against = residual["against"]
            _points(axis, against, width, width - error, width + error, (number, number), result)
            axis.set_xlabel(axis_title(against["title"], against["unit"]))
            axis.set_ylabel(axis_title(f"width of {residual['title']}", residual["unit"]))
            if against["edges"][0] > 0 and against["unit"] == "GeV":
                axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        if name.startswith("pull"):
            axis.axhline(1, color="black", linewidth=0.8, linestyle=":")
    _legend(figure, axes, single=len(results) == 1)
    return figure


def residual_figure(results: Sequence[Result], stage: str, names: Sequence[str]) -> Figure:
    """Distributions of residuals or pulls, scaled to the same area."""
    figure, axes = panels(len(names))
    for axis, name in zip(axes, names, strict=True):
        for number, (result, histograms) in enumerate(results):
            residual = histograms["residuals"].get(stage, {}).get(name)
            if residual is None:
                continue
            counts = np.array(residual["counts"]).sum(axis=0)
            # The fine bins that widths need are too narrow for a plot; the outermost hold all values beyond.
            coarse = counts.reshape(-1, DRAWN_TOGETHER).sum(axis=1) / max(counts.sum(), 1)
            edges = np.linspace(-residual["limit"], residual["limit"], len(coarse) + 1)
            found = summary(counts, residual["limit"])
            text = "no entries" if found["width"] is None else f"width {found['width']:.3g} {residual['unit']}".strip()
            axis.stairs(coarse, edges, color=COLOURS[number], label=f"{result}: {text}" if len(results) > 1 else text)
            axis.set_xlabel(axis_title(residual["title"], residual["unit"]))
        axis.set_ylabel("fraction of entries")
        axis.set_ylim(0, 1.35 * axis.get_ylim()[1])
        axis.legend(fontsize=8, loc="upper left", frameon=False)
    return figure


def _curves(
    results: Sequence[Result], stage: str, variable: str
) -> list[tuple[tuple[int, int], tuple[str, str, dict[str, Any]]]]:
    """Number of the category and of the result, name of the result, of the category, and the sums, for each curve."""
    names = list(results[0][1]["stages"][stage]["categories"])
    return [
        ((names.index(name), number), (result, name, categories[name][variable]))
        for number, (result, histograms) in enumerate(results)
        for categories in [histograms["stages"].get(stage, {"categories": {}})["categories"]]
        for name in names
        if name in categories
    ]


def _label(results: Sequence[Result], result: str, category: str) -> str:
    label = _LABELS.get(category, category)
    return label if len(results) == 1 else f"{label}, {result}"


def _rate(part: Sequence[float], whole: Sequence[float]) -> tuple[Float64Array, Float64Array, Float64Array]:
    k, n = np.array(part), np.array(whole)
    low, high = wilson_interval(k, n)
    return k / np.where(n > 0, n, np.nan), low, high


def _points(
    axis: Axes,
    binned: dict[str, Any],
    value: Float64Array,
    low: Float64Array,
    high: Float64Array,
    number: tuple[int, int],
    label: str,
) -> None:
    edges = np.array(binned["edges"])
    # Curves are shifted a little, so that their error bars do not overlap.
    centre = edges[:-1] + np.diff(edges) * (0.5 + 0.12 * (number[0] - 1) + 0.06 * number[1])
    colour, marker = COLOURS[number[0] % len(COLOURS)], MARKERS[number[1] % len(MARKERS)]
    known = np.isfinite(value)
    axis.errorbar(
        centre[known],
        value[known],
        yerr=np.maximum([(value - low)[known], (high - value)[known]], 0),
        color=colour,
        marker=marker,
        markersize=3.5,
        markerfacecolor=colour if number[1] == 0 else "white",
        linestyle="none",
        linewidth=0.9,
        label=label,
    )


def _format_axes(
    axis: Axes, binning: Binning, title: str, drawn: list[Float64Array], *, top: bool, of: str = ""
) -> None:
    axis.set_xlabel(axis_title(of + binning.title, binning.unit))
    axis.set_ylabel(title)
    if binning.logarithmic:
        axis.set_xscale("log")
    values = np.concatenate(drawn) if drawn else np.empty(0)
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return
    # The axis ends at 1 for efficiencies and purities, and begins at 0 for other rates.
    if top:
        depth = 1.25 * max(1 - float(values.min()), 0.02)
        axis.set_ylim(max(0.0, 1 - depth), 1 + 0.06 * depth)
    else:
        axis.set_ylim(0, 1.25 * max(float(values.max()), 1e-3))


def _spectrum(axis: Axes, results: Sequence[Result], stage: str, variable: str) -> None:
    """The spectrum of the particles of the category `long`, in grey and in arbitrary units."""
    counts = results[0][1]["stages"][stage]["categories"].get("long", {}).get(variable)
    if counts is None:
        return
    edges, n = np.array(counts["edges"]), np.array(counts["reconstructible"])
    density = n / np.diff(np.log(edges) if PARTICLE_BINNINGS[variable].logarithmic else edges)
    low, high = axis.get_ylim()
    axis.stairs(
        low + 0.45 * (high - low) * density / max(density.max(), 1e-9),
        edges,
        baseline=low,
        fill=True,
        color=_BACKGROUND,
        zorder=0.4,
        label="spectrum of long particles (a.u.)",
    )
    axis.set_ylim(low, high)


def _legend(figure: Figure, axes: Sequence[Axes], *, single: bool = False) -> None:
    """One legend for all panels, in the place of a missing panel or below them; none for a single curve."""
    if single:
        return
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    places = axes[0].get_gridspec()
    if places is not None and len(axes) < places.nrows * places.ncols:
        free = figure.add_subplot(places[len(axes)])
        free.set_axis_off()
        free.legend(found.values(), found.keys(), loc="center left", frameon=False, fontsize=9)
    else:
        figure.legend(
            found.values(),
            found.keys(),
            loc="outside lower center",
            ncols=min(len(found), 4),
            frameon=False,
            fontsize=9,
        )
