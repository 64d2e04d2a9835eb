"""The banks of an event as a figure. Needs matplotlib."""

from io import BytesIO

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from hltnode.processing.offline.plots.figures import STYLE
from hltnode.processing.raw.offline.display.event_reader import BankPicture
from hltnode.processing.raw.offline.display.picture import colour_of_types

_DPI = 150


def event_png(picture: BankPicture, source: str) -> bytes:
    """Bars of the bytes of each source."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 4.5), layout="constrained")
        axes = figure.add_subplot()
        colours = colour_of_types(picture)
        types, sizes = picture.banks["type"].tolist(), picture.banks["size"].tolist()
        axes.bar(range(len(sizes)), sizes, color=[colours[kind] for kind in types])
        axes.set_xlabel("source, in ascending order of its id")
        axes.set_ylabel("bytes")
        # Names of files are no formulas, whatever they contain.
        title = axes.set_title(f"{picture.title}: {picture.summary}\n{source}", loc="left", fontsize=9)
        title.set_parse_math(False)
        axes.legend(handles=[Patch(color=colour, label=f"type {kind}") for kind, colour in colours.items()])
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()
