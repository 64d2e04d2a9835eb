"""Pictures of single events, for `hltnode display`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from hltnode.processing.alice.offline.display.event_reader import EventReader, SlicePicture
from hltnode.processing.alice.offline.display.html_page import event_page
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.offline.shown_event import run_and_event
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.alice.tpc_banks import N_SLICES
from hltnode.protocol.raw_data.raw_bank import RawBank


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayOptions:
    """The options of `hltnode display` that this chain has of its own."""

    slice_number: Annotated[
        int | None,
        typer.Option(
            "--slice", min=0, max=N_SLICES - 1, help="Slice to draw, 0 to 35; default: that with most clusters."
        ),
    ] = None


FULLEST_SLICE = DisplayOptions()


class TpcDisplay:
    """Clusters, links, seeds, tracklets and tracks of a slice."""

    options = DisplayOptions

    def run_and_event(self, banks: Sequence[RawBank]) -> tuple[int, int] | tuple[None, None]:
        """Run and event number from an ODIN bank."""
        return run_and_event(banks)

    def reader(
        self,
        chain: TriggerChain,
        geometry: Path | None,
        trigger: TriggerConfig,
        own: DisplayOptions = FULLEST_SLICE,
    ) -> EventReader:
        """What reconstructs events. Raises ValueError, which names the file of the geometry, and BackendError."""
        constants = chain.load_geometry(geometry)
        backend = create_backend("cpu", chain.kernels, threads=1)
        return EventReader(chain, backend, constants, trigger, own.slice_number)

    def page(self, picture: SlicePicture, source: str, n_lines: int) -> str:
        """An HTML file."""
        return event_page(picture, source=source, n_lines=n_lines)

    def png(self, picture: SlicePicture, source: str) -> bytes:
        """A still picture."""
        # Only PNG needs matplotlib, an extra.
        from hltnode.processing.alice.offline.display.figure import event_png

        return event_png(picture, source)
