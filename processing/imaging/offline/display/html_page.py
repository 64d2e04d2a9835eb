"""An event as one HTML file that needs nothing else: the image in colour, and a table of the components."""

from pathlib import Path

import numpy as np
from markupsafe import Markup

from hltnode.processing.framework.page_templates import render
from hltnode.processing.imaging.offline.display.event_reader import ImagePicture
from hltnode.processing.imaging.offline.display.picture import image_drawing, step_of

_TEMPLATES = Path(__file__).parent / "templates"
SHOWN = 100
"""Components in the table, the largest ones."""


def event_page(picture: ImagePicture, *, source: str, n_lines: int) -> str:
    """The page. source: where the event is from, such as the name of its file; n_lines: how many lines were run."""
    order = np.argsort(-picture.components["area"].astype(np.int64), kind="stable")[:SHOWN]
    rows = [
        (
            number,
            int(one["area"]),
            f"{one['left']} to {one['right']}",
            f"{one['top']} to {one['bottom']}",
            f"{one['x']:.2f}",
            f"{one['y']:.2f}",
            int(one["intensity"]),
        )
        for number, one in zip(order.tolist(), picture.components[order], strict=True)
    ]
    return render(
        "event.html",
        _TEMPLATES,
        title=picture.title,
        source=source,
        summary=picture.summary,
        lines=picture.lines,
        n_lines=n_lines,
        flags=picture.flags,
        rows=rows,
        n_components=picture.n_components,
        step=step_of(picture),
        # Made of numbers alone.
        drawing=Markup(image_drawing(picture)),
    )
