"""Pictures of single events, for `hltnode display`."""

from collections.abc import Sequence
from pathlib import Path

from hltnode.processing.alice.geometry.tpc_geometry import load_geometry
from hltnode.processing.alice.offline.display.event_reader import EventReader, SlicePicture
from hltnode.processing.alice.offline.display.html_page import event_page
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.offline.shown_event import run_and_event
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.raw_data.raw_bank import RawBank


class TpcDisplay:
    """Clusters, links, seeds and tracks of the slice with most clusters."""

    def run_and_event(self, banks: Sequence[RawBank]) -> tuple[int, int] | tuple[None, None]:
        """Run and event number from an ODIN bank."""
        return run_and_event(banks)

    def reader(self, chain: TriggerChain, geometry: Path | None, trigger: TriggerConfig) -> EventReader:
        """What reconstructs events. Raises ValueError, which names the file of the geometry, and BackendError."""
        constants = chain.load_geometry(geometry)
        backend = create_backend("cpu", chain.kernels, threads=1)
        return EventReader(chain, backend, constants, trigger, load_geometry(geometry))

    def page(self, picture: SlicePicture, source: str, n_lines: int) -> str:
        """An HTML file."""
        return event_page(picture, source=source, n_lines=n_lines)

    def png(self, picture: SlicePicture, source: str) -> bytes:
        """A still picture."""
        # Only PNG needs matplotlib, an extra.
        from hltnode.processing.alice.offline.display.figure import event_png

        return event_png(picture, source)
