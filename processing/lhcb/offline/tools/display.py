"""Pictures of single events of LHCb, for `hltnode display`."""

from collections.abc import Sequence
from pathlib import Path

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.lhcb.offline.display.event_reader import EventReader
from hltnode.processing.lhcb.offline.display.html_page import event_page
from hltnode.processing.lhcb.offline.display.scene import Scene
from hltnode.processing.offline.chain_tools import NO_OPTIONS, NoOptions
from hltnode.processing.offline.shown_event import run_and_event
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.raw_data.raw_bank import RawBank


class LhcbDisplay:
    """Hits, tracks, vertices, and the truth of simulated events."""

    options = NoOptions

    def run_and_event(self, banks: Sequence[RawBank]) -> tuple[int, int] | tuple[None, None]:
        """Run and event number from the ODIN bank."""
        return run_and_event(banks)

    def reader(
        self,
        chain: TriggerChain,
        geometry: Path | None,
        trigger: TriggerConfig,
        own: NoOptions = NO_OPTIONS,  # noqa: ARG002
    ) -> EventReader:
        """What reconstructs events with a trigger configuration. Raises GeometryError, BackendError."""
        return EventReader(
            chain,
            create_backend("cpu", chain.kernels, threads=1),
            chain.with_sequence(trigger.sequence).load_geometry(geometry),
            trigger,
            run_lines=True,
        )

    def page(self, picture: Scene, source: str, n_lines: int) -> str:
        """An interactive HTML file."""
        return event_page(picture, source=source, n_lines=n_lines)

    def png(self, picture: Scene, source: str) -> bytes:
        """A still picture."""
        # Only PNG needs matplotlib, an extra.
        from hltnode.processing.lhcb.offline.display.figure import event_figure, png

        return png(event_figure(picture, source=source))
