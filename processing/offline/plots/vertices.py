"""Figures of vertex finding."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from hltnode.processing.offline.checks.binning import Binning
from hltnode.processing.offline.plots.figures import (
    MIN_ENTRIES,
    Result,
    format_axes,
    legend,
    panels,
    points,
    rate_interval,
)


def vertex_efficiency_figure(results: Sequence[Result], binnings: Mapping[str, Binning]) -> Figure:
    """Efficiency of each kind of collision (the "pv" object) against the variables of `binnings`."""
    figure, axes = panels(len(binnings))
    for axis, (variable, binning) in zip(axes, binnings.items(), strict=True):
        drawn = []
        for number, (result, histograms) in enumerate(results):
            for kind, (name, of_kind) in enumerate(histograms.get("pv", {}).items()):
                counts = of_kind[variable]
                rate, low, high = rate_interval(counts["reconstructed"], counts["reconstructible"])
                shown = np.array(counts["reconstructible"]) >= MIN_ENTRIES
                drawn += [low[shown], high[shown]]
                label = name if len(results) == 1 else f"{name}, {result}"
                points(axis, counts, np.where(shown, rate, np.nan), low, high, (kind, number), label)
        format_axes(axis, binning, "efficiency", drawn, top=True)
    legend(figure, axes)
    return figure
