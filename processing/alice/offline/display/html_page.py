"""A slice as one HTML file that needs nothing else: two projections, and a table of the tracks."""

from pathlib import Path

from markupsafe import Markup

from hltnode.processing.alice.offline.display.event_reader import SlicePicture
from hltnode.processing.alice.offline.display.picture import slice_drawing
from hltnode.processing.framework.page_templates import render
from hltnode.processing.offline.pages.template_folder import TEMPLATES as SHARED_TEMPLATES

_TEMPLATES = Path(__file__).parent / "templates"


def event_page(picture: SlicePicture, *, source: str, n_lines: int) -> str:
    """The page. source: where the event is from, such as the name of its file; n_lines: how many lines were run."""
    rows = [
        (len(track), f"{picture.x[track[0]]:.2f}", f"{picture.x[track[-1]]:.2f}", f"{picture.y[track[0]]:.2f}")
        for track in picture.tracks
        if len(track)
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
        drawing=Markup(slice_drawing(picture)),
    )
