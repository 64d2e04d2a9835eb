"""The figure of a tuning of cuts. Needs matplotlib (extra `plot`)."""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from hltnode.processing.offline.plots.figures import COLOURS, STYLE, WIDTH, axis_title


def curve_figure(result: dict[str, Any]) -> Figure:
    """Efficiency of each signal against the rate of all lines, for the best cuts of several caps; the shipped cuts."""
    curve = [of["held_out"] for of in result["curve"]]
    shipped = result["shipped"]["held_out"]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 4.4), layout="constrained")
        axis = figure.add_subplot()
    rate = np.array([of["rate_hz"] for of in curve]) / 1e3
    for number, name in enumerate(shipped["efficiencies"]):
        value, low, high = (
            100 * np.array([of["efficiencies"][name][key] for of in curve]) for key in ("value", "low", "high")
        )
        colour = COLOURS[number % len(COLOURS)]
        errors = np.maximum([value - low, high - value], 0)
        axis.errorbar(rate, value, yerr=errors, color=colour, marker="o", markersize=4, linewidth=0.9, label=name)
        of_shipped = 100 * shipped["efficiencies"][name]["value"]
        axis.plot([shipped["rate_hz"] / 1e3], [of_shipped], "x", color=colour, label=f"{name}, shipped")
    axis.axvline(result["cap_hz"] / 1e3, color="#777777", linewidth=0.8, linestyle=":", label="cap")
    axis.set_xlabel(axis_title("rate of all lines", "kHz"))
    axis.set_ylabel(axis_title("efficiency", "%"))
    axis.legend(fontsize=8, frameon=False, loc="lower right")
    return figure
