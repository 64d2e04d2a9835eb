"""A slice as a figure. Needs matplotlib."""

from io import BytesIO

import matplotlib as mpl
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hltnode.processing.alice.offline.display.event_reader import SlicePicture
from hltnode.processing.alice.offline.display.picture import COLOURS
from hltnode.processing.offline.plots.figures import STYLE

_DPI = 150


def slice_figure(picture: SlicePicture, source: str) -> Figure:
    """Two projections of the slice, and the colours of clusters, links, seeds, tracklets and tracks."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 10), layout="constrained")
        for place, (v, name) in enumerate(((picture.y, "y in cm"), (picture.drift, "drift coordinate in cm"))):
            axes = figure.add_subplot(2, 1, place + 1)
            at = np.column_stack([picture.x, v])
            for layer, links in (("deleted links", picture.deleted_links), ("links", picture.links)):
                axes.add_collection(LineCollection(list(at[links]), colors=COLOURS[layer], linewidths=0.4))
            for layer, width, of_layer in (("tracklets", 1.4, picture.tracklets), ("tracks", 0.6, picture.tracks)):
                lines = [at[clusters] for clusters in of_layer]
                axes.add_collection(LineCollection(lines, colors=COLOURS[layer], linewidths=width))
            axes.scatter(at[:, 0], at[:, 1], s=0.6, color=COLOURS["clusters"])
            axes.scatter(at[picture.seeds, 0], at[picture.seeds, 1], s=5, color=COLOURS["seeds"])
            axes.set_xlabel("x in cm")
            axes.set_ylabel(name)
            if place == 0:
                # Names of files are no formulas, whatever they contain.
                title = axes.set_title(f"{picture.title}: {picture.summary}\n{source}", loc="left", fontsize=8)
                title.set_parse_math(False)
        samples = [Line2D([], [], color=colour, linewidth=2, label=name) for name, colour in COLOURS.items()]
        figure.legend(handles=samples, loc="outside lower center", ncols=len(samples))
    return figure


def event_png(picture: SlicePicture, source: str) -> bytes:
    """The figure of a slice."""
    figure = slice_figure(picture, source)
    with mpl.rc_context(STYLE):
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()
