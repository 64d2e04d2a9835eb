"""Panels, curves with error bars, and legends in the style of all reports. Needs matplotlib (extra `plot`).

Bins of fewer than ten entries are not drawn. Error bars of rates are Wilson score intervals of 68.3 %; those of means
are standard errors of the mean; those of widths are width / sqrt(2 n).
"""

from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from hltnode.processing.framework.statistics import wilson_interval
from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.checks.binning import Binning

# Okabe and Ito's palette: distinguishable with any colour vision and in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
BACKGROUND = "#d9d9d9"
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
WIDTH = 11.7
"""Width of every figure in inches: pages show figures in full width, so letters have one size."""
_HEIGHTS = {1: 4.4, 2: 3.8, 3: 2.9}
"""Height of a panel by the number of panels in a row."""
# Rates and widths of fewer entries are not significant, and their error bars would hide the others.
MIN_ENTRIES = 10
MARKERS = ("o", "s")

Result = tuple[str, dict[str, Any]]
"""Name and JSON object of a result, or the part of the object that a figure draws."""


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
        figure = Figure(figsize=(WIDTH, _HEIGHTS[columns] * rows), layout="constrained")
        axes = [figure.add_subplot(rows, columns, i + 1) for i in range(n)]
    return figure, axes


def axis_title(title: str, unit: str) -> str:
    """Label of an axis with its unit."""
    return f"{title} [{unit}]" if unit else title


def in_per_cent(axis: Axes) -> None:
    """Show the fractions of the vertical axis in per cent."""
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{100 * value:.6g}"))


def rate_interval(part: Sequence[float], whole: Sequence[float]) -> tuple[Float64Array, Float64Array, Float64Array]:
    k, n = np.array(part), np.array(whole)
    low, high = wilson_interval(k, n)
    return k / np.where(n > 0, n, np.nan), low, high


def points(
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


def format_axes(
    axis: Axes, binning: Binning, title: str, drawn: list[Float64Array], *, top: bool, of: str = ""
) -> None:
    axis.set_xlabel(axis_title(of + binning.title, binning.unit))
    axis.set_ylabel(axis_title(title, "%"))
    in_per_cent(axis)
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


def legend(figure: Figure, axes: Sequence[Axes], *, single: bool = False) -> None:
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
