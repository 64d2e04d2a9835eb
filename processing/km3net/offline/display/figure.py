"""Hits in space and their time as a figure. Needs matplotlib."""

from io import BytesIO

import matplotlib as mpl
from matplotlib.figure import Figure

from hltnode.processing.km3net.offline.display.event_reader import HitPicture
from hltnode.processing.km3net.offline.display.picture import TRUTH
from hltnode.processing.offline.pages.time_colours import OTHER
from hltnode.processing.offline.plots.figures import STYLE

_DPI = 150
_TRACK = 100.0
"""m: half of the length of a drawn muon."""


def event_png(picture: HitPicture, source: str) -> bytes:
    """A view in three dimensions; the colour is the time."""
    first, last = picture.span
    places = picture.detector.positions
    inside = (picture.times >= first) & (picture.times <= last)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7, 8), layout="constrained")
        axes = figure.add_subplot(projection="3d", computed_zorder=False)
        axes.scatter(*places.T, s=3, color=OTHER, label="PMTs")
        shown = axes.scatter(
            *places[picture.pmts[inside]].T,
            c=picture.times[inside],
            s=6.0 + picture.charges[inside] / 10.0,
            cmap="viridis",
            vmin=first,
            vmax=last,
        )
        for muon in picture.muons:
            ends = muon["position"] + [[-_TRACK], [_TRACK]] * muon["direction"]
            axes.plot(*ends.T, color=TRUTH, linestyle="--", label="true muon")
        axes.set_xlabel("x in m")
        axes.set_ylabel("y in m")
        axes.set_zlabel("z in m")
        figure.colorbar(shown, ax=axes, label="time in ns", shrink=0.6)
        # Names of files are no formulas, whatever they contain.
        title = axes.set_title(f"{picture.title}: {picture.summary}\n{source}", loc="left", fontsize=9)
        title.set_parse_math(False)
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()
