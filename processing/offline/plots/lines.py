"""Figures of rates and efficiencies of lines, of one trigger configuration or of two overlaid. Needs matplotlib (extra
`plot`)."""

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hltnode.processing.framework.statistics import wilson_interval
from hltnode.processing.offline.plots.figures import COLOURS, MARKERS, STYLE, WIDTH, Result, axis_title, panels

Interval = tuple[float, float, float]
"""Value, lower and upper end; all nan if the value is unknown."""

_NOTHING: Interval = (np.nan, np.nan, np.nan)
_ROW_HEIGHT = 0.24


def rate_figure(results: Sequence[Result]) -> Figure:
    """Rates of the lines, in all and alone, on a logarithmic axis."""

    def in_khz(of: dict[str, Any], prefix: str) -> Interval:
        keys = (f"{prefix}hz" if prefix else "rate_hz", f"{prefix}low_hz", f"{prefix}high_hz")
        value, low, high = (of[key] / 1e3 if key in of else np.nan for key in keys)
        return value or np.nan, low, high

    kinds: dict[str, Callable[[dict[str, Any]], Interval]] = {
        "rate": lambda of: in_khz(of, ""),
        "alone": lambda of: in_khz(of, "exclusive_"),
    }
    figure, axis = _by_line(results, kinds, "total", "all lines")
    has_rate = any(of["total"]["rate_hz"] > 0 for _, of in results)
    axis.set_xscale("log" if has_rate else "linear")
    axis.set_xlabel(axis_title("rate", "kHz"))
    return figure


def efficiency_figure(results: Sequence[Result]) -> Figure:
    """Efficiencies of the lines, and efficiencies on signal."""

    def in_percent(of: dict[str, Any], name: str) -> Interval:
        value, low, high = (of[key] for key in (name, f"{name}_low", f"{name}_high"))
        return _NOTHING if value is None else (100 * value, 100 * low, 100 * high)

    kinds: dict[str, Callable[[dict[str, Any]], Interval]] = {
        "efficiency": lambda of: in_percent(of, "efficiency"),
        "on signal": lambda of: in_percent(of, "trigger_on_signal"),
    }
    figure, axis = _by_line(results, kinds, "any", "any line")
    axis.set_xlim(-1, 101)
    axis.set_xlabel(axis_title("fraction of reconstructible decays", "%"))
    return figure


def _by_line(
    results: Sequence[Result],
    kinds: dict[str, Callable[[dict[str, Any]], Interval]],
    of_all: str,
    title_of_all: str,
) -> tuple[Figure, Axes]:
    """One row for each line with a number above 0, and one for all together; one colour for each kind of number, one
    marker for a result."""
    names = list(
        dict.fromkeys(
            name
            for _, result in results
            for name, of in result["lines"].items()
            if any(interval_of(of)[0] > 0 for interval_of in kinds.values())
        )
    )
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.2 + _ROW_HEIGHT * (len(names) + 1)), layout="constrained")
        axis = figure.add_subplot()
    places = np.arange(len(names) + 1)
    shift = 0.3 / max(len(results) * len(kinds) - 1, 1)
    for number, (result, content) in enumerate(results):
        rows = [*(content["lines"].get(name) for name in names), content[of_all]]
        for kind, (title, interval_of) in enumerate(kinds.items()):
            found = np.array([_NOTHING if row is None else interval_of(row) for row in rows])
            known = np.isfinite(found[:, 0])
            value, low, high = found[known].T
            axis.errorbar(
                value,
                (places + shift * (number * len(kinds) + kind) - 0.15)[known],
                xerr=np.maximum([value - low, high - value], 0),
                color=COLOURS[kind],
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
                markerfacecolor=COLOURS[kind] if number == 0 else "white",
                linestyle="none",
                linewidth=0.9,
                label=title if len(results) == 1 else f"{title}, {result}",
            )
    axis.set_yticks(places, [*names, title_of_all], fontsize=8)
    axis.set_ylim(len(names) + 0.6, -0.6)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure, axis


def overlap_figure(name: str, result: dict[str, Any]) -> Figure:
    """The fraction of the events of a row's line that the column's line selects too."""
    events = np.array(result["overlap"]["weights"], dtype=np.float64)
    selected = events.diagonal() > 0
    names = [line for line, any_event in zip(result["overlap"]["lines"], selected, strict=True) if any_event]
    events = events[np.ix_(selected, selected)]
    share = 100 * events / events.diagonal()[:, None]
    size = 2.6 + 0.27 * max(len(names), 1)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(size + 0.6, size), layout="constrained")
        axis = figure.add_subplot()
        axis.grid(visible=False)
        image = axis.imshow(share, cmap="Blues", vmin=0, vmax=100, aspect="equal")
    places = np.arange(len(names))
    axis.set_xticks(places, names, rotation=90, fontsize=7)
    axis.set_yticks(places, names, fontsize=7)
    for row in range(len(names)):
        for column in range(len(names)):
            if share[row, column] >= 0.5:
                colour = "white" if share[row, column] > 60 else "#333333"
                axis.text(column, row, f"{share[row, column]:.0f}", ha="center", va="center", fontsize=5, color=colour)
    axis.set_title(name)
    # The caption explains it: with few lines there is no room for a long label.
    figure.colorbar(image, ax=axis, shrink=0.6, label="share [%]")
    return figure


def rate_scan_figure(results: Sequence[Result], number: int) -> Figure:
    """Rates of the line and of all lines against the cut of a scan."""
    figure, axes = panels(2)
    for axis, (of, title) in zip(axes, {"line": "line", "total": "all lines"}.items(), strict=True):
        for place, (result, content) in enumerate(results):
            for kind in (of, "exclusive") if of == "line" else (of,):
                points = [
                    [point[kind][key] / 1e3 for key in ("rate_hz", "low_hz", "high_hz")]
                    for point in content["scans"][number]["points"]
                ]
                label = {"line": "line", "exclusive": "alone", "total": "all lines"}[kind]
                _curve(axis, content["scans"][number], np.array(points), place, label, result, len(results))
        _label_scan(axis, results[0][1]["scans"][number], axis_title(f"rate of {title}", "kHz"))
    return figure


def efficiency_scan_figure(results: Sequence[Result], number: int) -> Figure:
    """Efficiencies of the line and of any line against the cut of a scan."""
    figure, axes = panels(2)
    for axis, (of, title) in zip(axes, {"line": "the line", "any": "any line"}.items(), strict=True):
        for place, (result, content) in enumerate(results):
            for kind, label in {"efficiency": "efficiency", "trigger_on_signal": "on signal"}.items():
                points = [
                    [
                        np.nan if point[of][key] is None else 100 * point[of][key]
                        for key in (kind, f"{kind}_low", f"{kind}_high")
                    ]
                    for point in content["scans"][number]["points"]
                ]
                _curve(axis, content["scans"][number], np.array(points), place, label, result, len(results))
        _label_scan(axis, results[0][1]["scans"][number], axis_title(f"efficiency of {title}", "%"))
    return figure


_CURVES = ("line", "efficiency", "all lines", "alone", "on signal")


def _curve(
    axis: Axes,
    scan: dict[str, Any],
    points: np.ndarray[Any, np.dtype[np.float64]],
    place: int,
    label: str,
    result: str,
    n_results: int,
) -> None:
    colour = COLOURS[0 if _CURVES.index(label) < 3 else 1]
    value = np.array([point["value"] for point in scan["points"]])
    axis.errorbar(
        value,
        points[:, 0],
        yerr=np.maximum([points[:, 0] - points[:, 1], points[:, 2] - points[:, 0]], 0),
        color=colour,
        marker=MARKERS[place % len(MARKERS)],
        markersize=3.5,
        markerfacecolor=colour if place == 0 else "white",
        linestyle="-" if place == 0 else "--",
        linewidth=0.9,
        label=label if n_results == 1 else f"{label}, {result}",
    )


def _label_scan(axis: Axes, scan: dict[str, Any], title: str) -> None:
    axis.set_xlabel(axis_title(f"{scan['line']}.{scan['cut']}", scan["unit"]))
    axis.set_ylabel(title)
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=8, frameon=False)


def pt_figure(results: Sequence[Result]) -> Figure:
    """Efficiency of any line and trigger on signal against the pt of the decay, the spectrum in grey."""
    figure, (axis,) = panels(1)
    first = results[0][1]["against_pt"]
    edges, n = np.array(first["edges"]), np.array(first["reconstructible"], dtype=np.float64)
    density = n / np.diff(edges)
    axis.stairs(
        45 * density / max(density.max(), 1e-9), edges, fill=True, color="#d9d9d9", zorder=0.4, label="spectrum (a.u.)"
    )
    for place, (result, content) in enumerate(results):
        binned = content["against_pt"]
        total = np.array(binned["reconstructible"], dtype=np.float64)
        for kind, (name, label) in enumerate({"selected": "any line", "trigger_on_signal": "on signal"}.items()):
            passed = np.array(binned[name], dtype=np.float64)
            low, high = wilson_interval(passed, total)
            shown = total >= 10
            rate = passed[shown] / total[shown]
            centre = (edges[:-1] + np.diff(edges) * (0.45 + 0.1 * kind + 0.05 * place))[shown]
            axis.errorbar(
                centre,
                100 * rate,
                yerr=100 * np.maximum([rate - low[shown], high[shown] - rate], 0),
                color=COLOURS[kind],
                marker=MARKERS[place % len(MARKERS)],
                markersize=3.5,
                markerfacecolor=COLOURS[kind] if place == 0 else "white",
                linestyle="none",
                linewidth=0.9,
                label=label if len(results) == 1 else f"{label}, {result}",
            )
    axis.set_xlabel(axis_title(first["title"], first["unit"]))
    axis.set_ylabel(axis_title("efficiency", "%"))
    axis.set_ylim(0, 104)
    axis.legend(fontsize=7, frameon=False, loc="lower right")
    return figure
