"""Pictures of single events for `hltnode display`: hits, tracks, vertices, and the truth of simulated events."""

from hltnode.processing.lhcb.offline.display.event_reader import EventReader
from hltnode.processing.lhcb.offline.display.html_page import event_page
from hltnode.processing.lhcb.offline.display.scene import Scene
from hltnode.processing.offline.event_display import EventDisplay


def _png(picture: Scene, source: str) -> bytes:
    # Only PNG needs matplotlib, an extra.
    from hltnode.processing.lhcb.offline.display.figure import event_figure, png

    return png(event_figure(picture, source=source))


DISPLAY = EventDisplay[Scene](
    make_reader=lambda of: EventReader(of.chain, of.backend, of.constants, of.trigger, run_lines=True),
    html=event_page,
    still=_png,
)
