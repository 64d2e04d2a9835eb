"""A sub-slice or a window as one HTML file that needs nothing else."""

from pathlib import Path

from markupsafe import Markup

from hltnode.processing.framework.page_templates import render
from hltnode.processing.mu3e.offline.display.event_reader import HitPicture
from hltnode.processing.mu3e.offline.display.picture import hit_drawing
from hltnode.processing.offline.pages.template_folder import TEMPLATES as SHARED_TEMPLATES

_TEMPLATES = Path(__file__).parent / "templates"


def event_page(picture: HitPicture, *, source: str, n_lines: int) -> str:
    """The page. source: where it is from, such as the name of its file; n_lines: how many lines were run."""
    rows = [
        (*(f"{value:.2f}" for value in place), *(f"{value:.1f}" for value in numbers))
        for place, numbers in zip(picture.vertices.tolist(), picture.vertex_rows, strict=True)
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
        windows=picture.windows.tolist(),
        # Made of numbers alone.
        drawing=Markup(hit_drawing(picture)),
    )
