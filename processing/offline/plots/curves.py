"""Figures of efficiency against ghost rate."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from hltnode.processing.offline.plots.figures import COLOURS, Result, panels

_LINES = ("-", "--")
# Curves are drawn down to this much below the smallest efficiency at the operating point, per cent.
_DEPTH = 30.0


def curves_figure(results: Sequence[Result], stage: str) -> Figure:
    """Efficiency against ghost rate for each cut of a stage, with the operating point."""
    cuts = results[0][1]["curves"][stage]
    figure, axes = panels(len(cuts))
    for axis, (name, first) in zip(axes, cuts.items(), strict=True):
        for number, (result, content) in enumerate(results):
            curve = content.get("curves", {}).get(stage, {}).get(name)
            if curve is None:
                continue
            ghosts = 100 * np.array(curve["ghost_rate"], dtype=np.float64)
            for place, (category, of) in enumerate(curve["categories"].items()):
                if not of["reconstructible"]:
                    continue
                label = category if len(results) == 1 else f"{category}, {result}"
                efficiency = 100 * np.array(of["efficiency"], dtype=np.float64)
                colour, line = COLOURS[place % len(COLOURS)], _LINES[number % len(_LINES)]
                axis.plot(ghosts, efficiency, line, color=colour, linewidth=1.2, marker=".", markersize=3, label=label)
                point = curve["operating_point"]
                axis.plot(
                    [100 * (point["ghost_rate"] or 0)],
                    [100 * point["efficiency"][category]],
                    "o" if number == 0 else "s",
                    color=colour,
                    markersize=6,
                )
        axis.set_title(first["title"], fontsize=8)
        axis.set_xlabel("ghost rate [%]")
        axis.set_ylabel("efficiency [%]")
        points = first["operating_point"]
        axis.set_ylim(max(0.0, 100 * min(filter(None, points["efficiency"].values()), default=0.0) - _DEPTH), 101)
        axis.set_xlim(0, 200 * (points["ghost_rate"] or 0.005))
        axis.legend(loc="lower right", fontsize=8)
    return figure
