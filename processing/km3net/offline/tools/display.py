"""Pictures of sub-slices and windows for `hltnode display`: hits in space with time as colour, and true muons."""

from hltnode.processing.km3net.geometry.detector import detector_of
from hltnode.processing.km3net.offline.display.event_reader import EventReader, HitPicture
from hltnode.processing.km3net.offline.display.html_page import event_page
from hltnode.processing.offline.event_display import EventDisplay


def _png(picture: HitPicture, source: str) -> bytes:
    # Only PNG needs matplotlib, an extra.
    from hltnode.processing.km3net.offline.display.figure import event_png

    return event_png(picture, source)


DISPLAY = EventDisplay[HitPicture](
    make_reader=lambda of: EventReader(of.chain, of.backend, of.constants, of.trigger, detector_of(of.geometry)),
    html=event_page,
    still=_png,
)
