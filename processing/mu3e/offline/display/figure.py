"""Hits in space and their time as a figure. Needs matplotlib."""

from io import BytesIO

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from hltnode.processing.mu3e.offline.display.event_reader import HitPicture
from hltnode.processing.mu3e.offline.display.picture import ACROSS, FOUND, TRUTH
from hltnode.processing.offline.pages.time_colours import OTHER
from hltnode.processing.offline.plots.figures import STYLE

_DPI = 150


def event_png(picture: HitPicture, source: str) -> bytes:
    """A view in three dimensions with the axis of the beam to the right; the colour is the time."""
    first, last = picture.span
    inside = (picture.times >= first) & (picture.times <= last)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 6), layout="constrained")
        axes = figure.add_subplot(projection="3d", computed_zorder=False)
        x, y, z = picture.places[~inside].T
        axes.scatter(z, x, y, s=2, color=OTHER)
        x, y, z = picture.places[inside].T
        shown = axes.scatter(z, x, y, c=picture.times[inside], s=12, cmap="viridis", vmin=first, vmax=last)
        for curve in picture.curves:
            x, y, z = np.where(np.hypot(curve[:, :1], curve[:, 1:2]) <= ACROSS, curve, np.nan).T
            axes.plot(z, x, y, color=FOUND)
        for places, colour, marker in ((picture.vertices, FOUND, "o"), (picture.true, TRUTH, "+")):
            x, y, z = places.T
            axes.scatter(z, x, y, color=colour, marker=marker, s=60)
        axes.set_xlabel("z in mm")
        axes.set_ylabel("x in mm")
        axes.set_zlabel("y in mm")
        axes.set_ylim(-ACROSS, ACROSS)
        axes.set_zlim(-ACROSS, ACROSS)
        axes.set_box_aspect((3, 1, 1))
        figure.colorbar(shown, ax=axes, label="time in ns", shrink=0.6)
        # Names of files are no formulas, whatever they contain.
        title = axes.set_title(f"{picture.title}: {picture.summary}\n{source}", loc="left", fontsize=9)
        title.set_parse_math(False)
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()
