"""Pictures of sub-slices and windows, for `hltnode display`."""

from collections.abc import Sequence
from pathlib import Path

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.mu3e.offline.display.event_reader import EventReader, HitPicture
from hltnode.processing.mu3e.offline.display.html_page import event_page
from hltnode.processing.offline.chain_tools import NO_OPTIONS, NoOptions
from hltnode.processing.offline.shown_event import run_and_event
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.raw_data.raw_bank import RawBank


class PixelDisplay:
    """Hits in three projections with time as colour, vertices with their tracks, and true decays."""

    options = NoOptions

    def run_and_event(self, banks: Sequence[RawBank]) -> tuple[int, int] | tuple[None, None]:
        """Run and event number from an ODIN bank."""
        return run_and_event(banks)

    def reader(
        self,
        chain: TriggerChain,
        geometry: Path | None,
        trigger: TriggerConfig,
        own: NoOptions = NO_OPTIONS,  # noqa: ARG002
    ) -> EventReader:
        """What finds the vertices of sub-slices. Raises ValueError and BackendError."""
        constants = chain.load_geometry(geometry)
        return EventReader(chain, create_backend("cpu", chain.kernels, threads=1), constants, trigger)

    def page(self, picture: HitPicture, source: str, n_lines: int) -> str:
        """An HTML file."""
        return event_page(picture, source=source, n_lines=n_lines)

    def png(self, picture: HitPicture, source: str) -> bytes:
        """A still picture."""
        # Only PNG needs matplotlib, an extra.
        from hltnode.processing.mu3e.offline.display.figure import event_png

        return event_png(picture, source)
