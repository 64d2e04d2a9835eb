"""Elements of the HTML reports: figures, tables, and the templates of the pages. Needs matplotlib and Jinja2."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from hltnode.processing.offline.plots.figures import WIDTH, svg_source


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure of a page: the address of its image, and its caption; `small` keeps its size in a wider page."""

    source: str
    caption: str
    small: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """Figures under one title."""

    title: str
    figures: Sequence[Drawn]


def drawn(figure: Figure, caption: str) -> Drawn:
    """A figure for a page; one that is narrower than `WIDTH` is not stretched to the width of the page."""
    return Drawn(svg_source(figure), caption, small=figure.get_figwidth() < WIDTH)
