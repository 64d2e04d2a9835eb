"""Figures of efficiency against ghosts and of mass peaks. Needs matplotlib (extra `plot`)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hltnode.processing.lhcb.offline.validation.reports.plots import COLOURS, axis_title, panels

_LINES = ("-", "--")
# Bins of a mass that are drawn as one.
_TOGETHER = 4
# Curves are drawn down to this much below the smallest efficiency at the operating point, per cent.
_DEPTH = 30.0


def curves_figure(results: Sequence[tuple[str, dict[str, Any]]], stage: str) -> Figure:
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


def mass_figure(masses: dict[str, Any]) -> Figure:
    """The masses of candidates, those that are the decay in colour, the fitted peak, and the true mass."""
    drawn = {name: of for name, of in masses.items() if sum(of["true"])}
    figure, axes = panels(len(drawn), columns=2)
    for axis, of in zip(axes, drawn.values(), strict=True):
        edges = np.array(of["edges"])[::_TOGETHER]
        everything, true = (
            np.add.reduceat(of[kind], np.arange(0, len(of[kind]), _TOGETHER)) for kind in ("all", "true")
        )
        axis.stairs(everything, edges, color="#444444", label="candidates")
        axis.stairs(true, edges, fill=True, color=COLOURS[5], alpha=0.6, label="true decays")
        label = f"true mass {of['true_mass']:.2f} MeV"
        axis.axvline(of["true_mass"], color=COLOURS[1], linestyle=":", linewidth=1.2, label=label)
        if of["curve"] is not None:
            axis.plot(
                of["curve"]["mass"],
                _TOGETHER * np.array(of["curve"]["entries"]),
                color=COLOURS[0],
                label=f"fit: {of['mass']:.2f} ± {of['mass_error']:.2f} MeV\n"
                f"core {of['core_width']:.2f} ± {of['core_width_error']:.2f} MeV",
            )
        axis.set_title(of["title"])
        axis.set_xlabel(axis_title("mass", "MeV"))
        axis.set_ylabel(f"entries / {edges[1] - edges[0]:.1f} MeV")
        axis.set_xlim(edges[0], edges[-1])
        axis.set_ylim(0, 1.6 * max(float(everything.max()), 1.0))
        axis.legend(loc="upper right", fontsize=7)
    return figure
