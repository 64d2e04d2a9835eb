"""Pictures of sub-slices and windows, for `hltnode display`."""

from collections.abc import Sequence
from pathlib import Path

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.km3net.geometry.detector import detector_of
from hltnode.processing.km3net.offline.display.event_reader import EventReader, HitPicture
from hltnode.processing.km3net.offline.display.html_page import event_page
from hltnode.processing.offline.chain_tools import NO_OPTIONS, NoOptions
from hltnode.processing.offline.shown_event import run_and_event
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.raw_data.raw_bank import RawBank


class TelescopeDisplay:
    """Hits in space with time as colour, windows and true muons."""

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
        """What finds the windows of sub-slices. Raises ValueError for a geometry, BackendError."""
        constants = chain.load_geometry(geometry)
        backend = create_backend("cpu", chain.kernels, threads=1)
        return EventReader(chain, backend, constants, trigger, detector_of(geometry))

    def page(self, picture: HitPicture, source: str, n_lines: int) -> str:
        """An HTML file."""
        return event_page(picture, source=source, n_lines=n_lines)

    def png(self, picture: HitPicture, source: str) -> bytes:
        """A still picture."""
        # Only PNG needs matplotlib, an extra.
        from hltnode.processing.km3net.offline.display.figure import event_png

        return event_png(picture, source)
