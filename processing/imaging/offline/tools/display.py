"""Pictures of single events for `hltnode display`: images with their components in colour."""

from hltnode.processing.imaging.offline.display.event_reader import EventReader, ImagePicture, run_and_event
from hltnode.processing.imaging.offline.display.html_page import event_page
from hltnode.processing.offline.event_display import EventDisplay


def _png(picture: ImagePicture, source: str) -> bytes:
    # Only PNG needs matplotlib, an extra.
    from hltnode.processing.imaging.offline.display.figure import event_png

    return event_png(picture, source)


DISPLAY = EventDisplay[ImagePicture](
    make_reader=lambda of: EventReader(of.chain, of.backend, of.constants, of.trigger),
    html=event_page,
    still=_png,
    numbers=run_and_event,
)
