"""From the raw banks of an event to its picture, through the sequence of the chain."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_mep
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.offline.counted import counted
from hltnode.processing.offline.shown_event import accepting_lines, run_and_event
from hltnode.processing.raw.banks.collections import event_number, source_bank
from hltnode.processing.raw.banks.flags import NO_EVENT_NUMBER
from hltnode.processing.raw.banks.list_banks import list_banks
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.raw_bank import RawBank

LIMITS = BatchLimits(events=1, meps=1, input_bytes=16 << 20, rows=1 << 16)
"""One event with a bank of any number of sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BankPicture:
    """The banks of an event, as the chain lists them.

    banks: records of source, type, size, version and subdetector by ascending source. number: None if no bank tells it.
    lines: those that accept the event; None where none was run.
    """

    banks: NDArray[np.void]
    number: int | None
    run: int | None
    flags: tuple[str, ...]
    lines: tuple[str, ...] | None

    @property
    def title(self) -> str:
        """Run and event number, as far as banks tell them."""
        parts = [] if self.run is None else [f"run {self.run}"]
        parts += ["an event without number" if self.number is None else f"event {self.number}"]
        return ", ".join(parts)

    @property
    def summary(self) -> str:
        """Numbers of banks, types and bytes."""
        n, n_bytes = len(self.banks), int(self.banks["size"].sum(dtype=np.int64))
        largest = int(self.banks["size"].max(initial=0))
        n_types = len(np.unique(self.banks["type"]))
        return (
            f"{counted(n, 'bank')} of {counted(n_types, 'type')}, {counted(n_bytes, 'byte')}; "
            f"the largest has {counted(largest, 'byte')}"
        )


class EventReader:
    """Runs single events through the chain and its lines. Raises TriggerConfigError and BackendError."""

    def __init__(self, chain: TriggerChain, backend: Backend, geometry: Constants, trigger: TriggerConfig) -> None:
        retain = (source_bank.name, event_number.name)
        self._engine = chain.create_engine(backend, geometry, trigger, LIMITS, retain=retain, with_lists=False)
        self._runner = OfflineRunner(self._engine, workspaces=1)
        (listing,) = (a for a in trigger.configure(chain.sequence) if a.name == list_banks.name)
        (number_type,) = (c.value for c in listing.constants if c.name == "number_type")
        self._has_numbers = number_type != NO_BANK

    def close(self) -> None:
        """Stop the back end."""
        self._engine.close()

    def read(self, banks: Sequence[RawBank], encoding: str = AUTO) -> BankPicture:
        """The picture of an event. Raises ProtocolError, BackendError, and ValueError above the limits."""
        mep = encode_mep(self._engine.chain, [banks], encoding=encoding)
        (batch,) = self._runner.run([mep])
        workspace = batch.workspace
        found = workspace.fetch(source_bank.name, len(mep.fragments))
        flags = int(workspace.host_array(event_flags.name)[0])
        run, number = run_and_event(banks)
        if number is None and self._has_numbers and not flags & NO_EVENT_NUMBER.mask:
            low, high = workspace.fetch(event_number.name, 2).tolist()
            number = high << 32 | low
        return BankPicture(
            banks=found[found["type"] != NO_BANK],
            number=number,
            run=run,
            flags=tuple(self._engine.flags.names(flags)),
            lines=accepting_lines(self._engine.lines, workspace.output.lines[0]),
        )
