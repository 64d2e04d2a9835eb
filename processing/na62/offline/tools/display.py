"""Pictures of single events for `hltnode display`: spots, hits and rings."""

from hltnode.processing.na62.offline.display.event_reader import EventReader, RingPicture
from hltnode.processing.na62.offline.display.html_page import event_page
from hltnode.processing.offline.event_display import EventDisplay


def _png(picture: RingPicture, source: str) -> bytes:
    # Only PNG needs matplotlib, an extra.
    from hltnode.processing.na62.offline.display.figure import event_png

    return event_png(picture, source)


DISPLAY = EventDisplay[RingPicture](
    make_reader=lambda of: EventReader(of.chain, of.backend, of.constants, of.trigger),
    html=event_page,
    still=_png,
)
