"""An event as one HTML file that needs nothing else: bars of the sizes, and a table of the banks."""

from pathlib import Path

from markupsafe import Markup

from hltnode.processing.framework.page_templates import render
from hltnode.processing.framework.readout import bank_type_name, subdetector_name
from hltnode.processing.offline.pages.template_folder import TEMPLATES as SHARED_TEMPLATES
from hltnode.processing.raw.offline.display.event_reader import BankPicture
from hltnode.processing.raw.offline.display.picture import bank_drawing
from hltnode.processing.raw.readout import RAW_READOUT

_TEMPLATES = Path(__file__).parent / "templates"


def event_page(picture: BankPicture, *, source: str, n_lines: int) -> str:
    """The page. source: where the event is from, such as the name of its file; n_lines: how many lines were run."""
    rows = [
        (
            int(bank["source"]),
            subdetector_name(RAW_READOUT, int(bank["subdetector"])),
            int(bank["type"]),
            bank_type_name(RAW_READOUT, int(bank["type"])),
            int(bank["version"]),
            int(bank["size"]),
        )
        for bank in picture.banks
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
        drawing=Markup(bank_drawing(picture)),
    )
