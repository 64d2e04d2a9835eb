"""The spots, hits and rings of an event as a figure. Needs matplotlib."""

from io import BytesIO

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from hltnode.processing.na62.offline.display.event_reader import RingPicture
from hltnode.processing.na62.offline.display.picture import RING_COLOURS, SPOT_COLOURS, TRUTH
from hltnode.processing.na62.rich.pmt_positions import PMTS_OF_SPOT, SPOTS, positions
from hltnode.processing.offline.plots.figures import STYLE

_DPI = 150


def event_png(picture: RingPicture, source: str) -> bytes:
    """Both spots over each other."""
    places = positions()
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7, 7), layout="constrained")
        axes = figure.add_subplot()
        x, y = places[:PMTS_OF_SPOT].T
        axes.scatter(x, y, s=18, facecolors="none", edgecolors=TRUTH, linewidths=0.3)
        for spot in range(SPOTS):
            of_spot = picture.pmts[picture.pmts // PMTS_OF_SPOT == spot]
            x, y = places[of_spot].T
            axes.scatter(x, y, s=18, color=SPOT_COLOURS[spot], label=f"hits of spot {spot + 1}")
        for i, ring in enumerate(picture.rings):
            colour = RING_COLOURS[i % len(RING_COLOURS)]
            axes.add_patch(Circle((ring["x"], ring["y"]), ring["radius"], fill=False, color=colour, linewidth=1.5))
        for ring in () if picture.true_rings is None else picture.true_rings:
            axes.add_patch(Circle((ring["x"], ring["y"]), ring["radius"], fill=False, color=TRUTH, linestyle="--"))
        axes.set_aspect("equal")
        axes.set_xlabel("x in mm")
        axes.set_ylabel("y in mm")
        # Names of files are no formulas, whatever they contain.
        title = axes.set_title(f"{picture.title}: {picture.summary}\n{source}", loc="left", fontsize=9)
        title.set_parse_math(False)
        axes.legend(loc="upper right")
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()
