"""An event as one HTML file that needs nothing else: the focal plane, and a table of the rings."""

from pathlib import Path

from markupsafe import Markup

from hltnode.processing.framework.page_templates import render
from hltnode.processing.na62.offline.display.event_reader import RingPicture
from hltnode.processing.na62.offline.display.picture import ring_drawing
from hltnode.processing.offline.pages.template_folder import TEMPLATES as SHARED_TEMPLATES

_TEMPLATES = Path(__file__).parent / "templates"


def event_page(picture: RingPicture, *, source: str, n_lines: int) -> str:
    """The page. source: where the event is from, such as the name of its file; n_lines: how many lines were run."""
    rows = [
        (f"{ring['x']:.1f}", f"{ring['y']:.1f}", f"{ring['radius']:.1f}", int(ring["hits"]), f"{ring['chi2']:.1f}")
        for ring in picture.rings
    ]
    return render(
        "event.html",
        _TEMPLATES,
        SHARED_TEMPLATES,
        title=picture.title,
        source=source,
        summary=picture.summary,
        lines=picture.lines,
        n_lines=n_lines,
        flags=picture.flags,
        rows=rows,
        # Made of numbers alone.
        drawing=Markup(ring_drawing(picture)),
    )
