"""Pictures of single events for `hltnode display`: clusters, links, seeds, tracklets and tracks of a slice."""

from dataclasses import dataclass
from typing import Annotated

import typer

from hltnode.processing.alice.offline.display.event_reader import EventReader, SlicePicture
from hltnode.processing.alice.offline.display.html_page import event_page
from hltnode.processing.offline.event_display import EventDisplay
from hltnode.protocol.alice.tpc_banks import N_SLICES


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayOptions:
    """The options of `hltnode display` that this chain has of its own."""

    slice_number: Annotated[
        int | None,
        typer.Option(
            "--slice", min=0, max=N_SLICES - 1, help="Slice to draw, 0 to 35; default: that with most clusters."
        ),
    ] = None


def _png(picture: SlicePicture, source: str) -> bytes:
    # Only PNG needs matplotlib, an extra.
    from hltnode.processing.alice.offline.display.figure import event_png

    return event_png(picture, source)


DISPLAY = EventDisplay[SlicePicture](
    make_reader=lambda of: EventReader(of.chain, of.backend, of.constants, of.trigger, of.options.slice_number),
    html=event_page,
    still=_png,
    options=DisplayOptions,
)
