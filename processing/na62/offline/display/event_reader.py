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
from hltnode.processing.na62.rich.collections import MAX_RINGS, event_number, ring, ring_count
from hltnode.processing.na62.rich.pmt_positions import N_PMTS
from hltnode.processing.offline.counted import counted
from hltnode.processing.offline.shown_event import accepting_lines, run_and_event
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.errors import BankError
from hltnode.protocol.na62.rich_banks import RichBankType, decode_hits, rings_of
from hltnode.protocol.raw_data.raw_bank import RawBank

LIMITS = BatchLimits(events=1, meps=1, input_bytes=1 << 17, rows=2)
"""One event; its bank has at most 64 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RingPicture:
    """An event as the chain sees it.

    pmts: numbers of the tubes with a hit. rings: records of x, y, radius, hits and chi2. true_rings: records of the
    simulation, None without truth. lines: those that accept the event; None where none was run.
    """

    pmts: NDArray[np.int64]
    rings: NDArray[np.void]
    true_rings: NDArray[np.void] | None
    number: int
    run: int | None
    flags: tuple[str, ...]
    lines: tuple[str, ...] | None

    @property
    def title(self) -> str:
        """Run and event number, as far as they are known."""
        return f"event {self.number}" if self.run is None else f"run {self.run}, event {self.number}"

    @property
    def summary(self) -> str:
        """Numbers of hits and rings."""
        truth = "" if self.true_rings is None else f"; {counted(len(self.true_rings), 'true ring')}"
        return f"{counted(len(self.pmts), 'hit')}, {counted(len(self.rings), 'ring')}{truth}"


class EventReader:
    """Runs single events through the chain and its lines. Raises TriggerConfigError and BackendError."""

    def __init__(self, chain: TriggerChain, backend: Backend, geometry: Constants, trigger: TriggerConfig) -> None:
        retain = (ring.name, ring_count.name, event_number.name)
        self._engine = chain.create_engine(backend, geometry, trigger, LIMITS, retain=retain, with_lists=False)
        self._runner = OfflineRunner(self._engine, workspaces=1)

    def close(self) -> None:
        """Stop the back end."""
        self._engine.close()

    def read(self, banks: Sequence[RawBank], encoding: str = AUTO) -> RingPicture:
        """The picture of an event. Raises ProtocolError, BackendError, and ValueError above the limits."""
        (batch,) = self._runner.run([encode_mep(self._engine.chain, [banks], encoding=encoding)])
        workspace = batch.workspace
        n_rings = int(workspace.host_array(ring_count.name)[0])
        low, high = workspace.fetch(event_number.name, 2).tolist()
        run, number = run_and_event(banks)
        return RingPicture(
            pmts=_pmts_of(banks),
            rings=workspace.fetch(ring.name, MAX_RINGS)[:n_rings].copy(),
            true_rings=rings_of(banks),
            number=high << 32 | low if number is None else number,
            run=run,
            flags=tuple(self._engine.flags.names(int(workspace.host_array(event_flags.name)[0]))),
            lines=accepting_lines(self._engine.lines, workspace.output.lines[0]),
        )


def _pmts_of(banks: Sequence[RawBank]) -> NDArray[np.int64]:
    """The tubes with a hit; none for a bank that the kernels refuse, too."""
    for bank in banks:
        if bank.type == RichBankType.HITS:
            try:
                pmts = decode_hits(bank.payload)["pmt"].astype(np.int64)
            except BankError:
                break
            return pmts[pmts < N_PMTS]
    return np.zeros(0, np.int64)
