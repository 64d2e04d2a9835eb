"""Elements of the HTML reports: figures, tables, and the templates of the pages. Needs matplotlib and Jinja2."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from hltnode.processing.offline.plots.figures import svg_source


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure of a page: the address of its image, and its caption."""

    source: str
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """Figures under one title."""

    title: str
    figures: Sequence[Drawn]


def drawn(figure: Figure, caption: str) -> Drawn:
    """A figure for a page."""
    return Drawn(svg_source(figure), caption)
