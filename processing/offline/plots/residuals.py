"""Figures of residuals and pulls: their distributions, and their widths against a variable."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from hltnode.processing.offline.checks.residuals import DRAWN_TOGETHER, summary
from hltnode.processing.offline.plots.figures import (
    COLOURS,
    MIN_ENTRIES,
    Result,
    axis_title,
    in_per_cent,
    legend,
    panels,
    points,
)


def width_figure(results: Sequence[Result], stage: str, names: Sequence[str]) -> Figure:
    """Width (half of the central 68.3 %) of residuals or pulls against their variable."""
    figure, axes = panels(len(names))
    for axis, name in zip(axes, names, strict=True):
        for number, (result, histograms) in enumerate(results):
            residual = histograms["residuals"].get(stage, {}).get(name)
            if residual is None:
                continue
            found = [summary(np.array(row), residual["limit"]) for row in residual["counts"]]
            shown = np.array([(row["entries"] or 0) >= MIN_ENTRIES for row in found])
            width, error = (
                np.where(shown, np.array([row[key] for row in found], dtype=np.float64), np.nan)
                for key in ("width", "width_error")
            )
            against = residual["against"]
            points(axis, against, width, width - error, width + error, (number, number), result)
            axis.set_xlabel(axis_title(against["title"], against["unit"]))
            axis.set_ylabel(axis_title(f"width of {residual['title']}", residual["unit"]))
            if against["edges"][0] > 0 and against["unit"] == "GeV":
                axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        if name.startswith("pull"):
            axis.axhline(1, color="black", linewidth=0.8, linestyle=":")
    legend(figure, axes, single=len(results) == 1)
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
        axis.set_ylabel("entries [%]")
        in_per_cent(axis)
        axis.set_ylim(0, 1.35 * axis.get_ylim()[1])
        axis.legend(fontsize=8, loc="upper left", frameon=False)
    return figure
