"""Pictures of single events for `hltnode display`: sizes of banks by source."""

from hltnode.processing.offline.event_display import EventDisplay
from hltnode.processing.raw.offline.display.event_reader import BankPicture, EventReader
from hltnode.processing.raw.offline.display.html_page import event_page


def _png(picture: BankPicture, source: str) -> bytes:
    # Only PNG needs matplotlib, an extra.
    from hltnode.processing.raw.offline.display.figure import event_png

    return event_png(picture, source)


DISPLAY = EventDisplay[BankPicture](
    make_reader=lambda of: EventReader(of.chain, of.backend, of.constants, of.trigger),
    html=event_page,
    still=_png,
)
