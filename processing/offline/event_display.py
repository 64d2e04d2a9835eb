"""The tool behind `hltnode display`, which the chains share: each gives its reader, its page and its figure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.offline.chain_tools import NO_OPTIONS, NoOptions, Picture, PictureReader
from hltnode.processing.offline.shown_event import run_and_event
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.raw_data.raw_bank import RawBank


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderInput:
    """What a reader of events is made of. constants: of the sequence of `trigger`. geometry: their folder, None: built
    in. options: those of the chain's own."""

    chain: TriggerChain
    backend: Backend
    constants: Constants
    trigger: TriggerConfig
    geometry: Path | None
    options: Any


@dataclass(frozen=True, kw_only=True)
class EventDisplay(Generic[Picture]):
    """Pictures of single events.

    make_reader: may raise ValueError, which names a file or key. html: the page of (picture, *, source, n_lines).
    still: the PNG file; it imports matplotlib, an extra, only when it is called. options: the dataclass of the chain's
    own options, with defaults. numbers: run and event number of an event.
    """

    make_reader: Callable[[ReaderInput], PictureReader[Picture]]
    html: Callable[..., str]
    still: Callable[[Picture, str], bytes]
    options: type[Any] = NoOptions
    numbers: Callable[[Sequence[RawBank]], tuple[int, int] | tuple[None, None]] = run_and_event

    def run_and_event(self, banks: Sequence[RawBank]) -> tuple[int, int] | tuple[None, None]:
        """Run and event number of an event, None where they cannot be read."""
        return self.numbers(banks)

    def reader(
        self, chain: TriggerChain, geometry: Path | None, trigger: TriggerConfig, own: Any = NO_OPTIONS
    ) -> PictureReader[Picture]:
        """What reconstructs events, on one thread of the CPU. own: NO_OPTIONS stands for the defaults.

        Raises ValueError for a geometry or options, and BackendError.
        """
        return self.make_reader(
            ReaderInput(
                chain=chain,
                backend=create_backend("cpu", chain.kernels, threads=1),
                constants=chain.with_sequence(trigger.sequence).load_geometry(geometry),
                trigger=trigger,
                geometry=geometry,
                options=self.options() if own is NO_OPTIONS else own,
            )
        )

    def page(self, picture: Picture, source: str, n_lines: int) -> str:
        """An HTML file. source: the file and place of the event; n_lines: the number of lines that ran."""
        return self.html(picture, source=source, n_lines=n_lines)

    def png(self, picture: Picture, source: str) -> bytes:
        """A still picture. Needs matplotlib."""
        return self.still(picture, source)
