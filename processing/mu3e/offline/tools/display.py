"""Pictures of sub-slices and windows for `hltnode display`: hits with time as colour, vertices, true decays."""

from hltnode.processing.mu3e.offline.display.event_reader import EventReader, HitPicture
from hltnode.processing.mu3e.offline.display.html_page import event_page
from hltnode.processing.offline.event_display import EventDisplay


def _png(picture: HitPicture, source: str) -> bytes:
    # Only PNG needs matplotlib, an extra.
    from hltnode.processing.mu3e.offline.display.figure import event_png

    return event_png(picture, source)


DISPLAY = EventDisplay[HitPicture](
    make_reader=lambda of: EventReader(of.chain, of.backend, of.constants, of.trigger),
    html=event_page,
    still=_png,
)
