"""The image of an event with its components in colour as a figure. Needs matplotlib."""

from io import BytesIO

import matplotlib as mpl
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from hltnode.processing.imaging.offline.display.event_reader import ImagePicture
from hltnode.processing.imaging.offline.display.picture import COLOURS
from hltnode.processing.offline.plots.figures import STYLE

_DPI = 150


def event_png(picture: ImagePicture, source: str) -> bytes:
    """The image in colour."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7, 7.5), layout="constrained")
        axes = figure.add_subplot()
        # A grid would hide pixels: the first row and column, and every fiftieth.
        axes.grid(visible=False)
        if picture.labels.size:
            colour = np.where(picture.labels < 0, 0, picture.labels % len(COLOURS) + 1)
            map_of_labels = ListedColormap(["#10141c", *COLOURS])
            axes.imshow(colour, cmap=map_of_labels, vmin=0, vmax=len(COLOURS), interpolation="nearest")
        axes.set_xlabel("column")
        axes.set_ylabel("row")
        # Names of files are no formulas, whatever they contain.
        title = axes.set_title(f"{picture.title}\n{picture.summary}\n{source}", loc="left", fontsize=8)
        title.set_parse_math(False)
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()
