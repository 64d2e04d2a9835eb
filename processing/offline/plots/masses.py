"""Figures of mass peaks."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hltnode.processing.offline.plots.figures import COLOURS, axis_title, panels

# Bins of the histogram in a bin of the figure.
_TOGETHER = 4


def mass_figure(masses: dict[str, Any]) -> Figure:
    """Masses of all candidates and of true decays (in colour), the fitted peak, and the true mass."""
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
