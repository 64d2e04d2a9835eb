"""A sub-slice or a window as one HTML file that needs nothing else."""

from pathlib import Path

from markupsafe import Markup

from hltnode.processing.framework.page_templates import render
from hltnode.processing.km3net.offline.display.event_reader import HitPicture
from hltnode.processing.km3net.offline.display.picture import hit_drawing
from hltnode.processing.offline.pages.template_folder import TEMPLATES as SHARED_TEMPLATES

_TEMPLATES = Path(__file__).parent / "templates"


def event_page(picture: HitPicture, *, source: str, n_lines: int) -> str:
    """The page. source: where it is from, such as the name of its file; n_lines: how many lines were run."""
    inside = (picture.times[:, None] >= picture.windows[:, 0]) & (picture.times[:, None] < picture.windows[:, 1])
    starts = (picture.candidates[:, None] >= picture.windows[:, 0]) & (
        picture.candidates[:, None] < picture.windows[:, 1]
    )
    rows = [
        (*edges, n_candidates, n_hits)
        for edges, n_candidates, n_hits in zip(
            picture.windows.tolist(), starts.sum(0).tolist(), inside.sum(0).tolist(), strict=True
        )
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
        drawing=Markup(hit_drawing(picture)),
    )
