"""Single sub-slices, or windows that a node kept, through a chain, for the pictures of streaming chains."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_mep
from hltnode.processing.framework.sub_slices import between_empty_margins
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.offline.shown_event import accepting_lines, run_and_event
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.errors import BankError
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.time_windows import TimeWindow

LIMITS = BatchLimits(events=5, meps=1, input_bytes=8 << 20, rows=2048)
"""A sub-slice and empty margins."""


@dataclass(frozen=True, slots=True)
class ComputedSubSlice:
    """A sub-slice in a workspace, valid until the next one is computed. place: its place among the events there."""

    workspace: Workspace
    place: int
    title: str
    flags: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """HIT[hits] of a window that a node kept, and i64[hits], their times in ns since its start."""

    hits: NDArray[np.void]
    times: NDArray[np.int64]
    windows: NDArray[np.int64]
    """The window itself, i64[1, 2]: 0 and its length in ns."""
    title: str
    flags: tuple[str, ...]


class SubSliceReader:
    """Runs single sub-slices of a streaming chain with its lines. Raises TriggerConfigError and BackendError."""

    def __init__(
        self,
        chain: TriggerChain,
        backend: Backend,
        geometry: Constants,
        trigger: TriggerConfig,
        retained: Sequence[str],
    ) -> None:
        self._engine = chain.create_engine(backend, geometry, trigger, LIMITS, retain=retained, with_lists=False)
        self._runner = OfflineRunner(self._engine, workspaces=1)

    def close(self) -> None:
        """Stop the back end."""
        self._engine.close()

    def compute(self, banks: Sequence[RawBank], encoding: str) -> ComputedSubSlice:
        """The results of a sub-slice. Raises ProtocolError and BackendError."""
        chain = self._engine.chain
        assert chain.streaming is not None
        events = list(between_empty_margins(chain.readout, chain.streaming, [list(banks)]))
        (batch,) = self._runner.run([encode_mep(chain, events, encoding=encoding)])
        workspace, place = batch.workspace, chain.streaming.margin_before
        run, number = run_and_event(banks)
        return ComputedSubSlice(
            workspace,
            place,
            title="sub-slice" if number is None else f"run {run}, sub-slice {number}",
            flags=tuple(self._engine.flags.names(int(workspace.host_array(event_flags.name)[place]))),
            lines=accepting_lines(self._engine.lines, workspace.output.lines[place]),
        )

    def shown(self, kept: TimeWindow, dtype: DTypeLike) -> ShownWindow:
        """The hits of a window as records of a type. Raises ValueError for hits of another size."""
        size = np.dtype(dtype).itemsize
        if kept.hits.shape[1] != size:
            raise ValueError(f"hits of {kept.hits.shape[1]} bytes, those of this chain have {size}")
        return ShownWindow(
            np.ascontiguousarray(kept.hits).view(dtype)[:, 0],
            kept.times - kept.start_ns,
            np.array([[0, kept.end_ns - kept.start_ns]], np.int64),
            title=f"run {kept.run}, slice {kept.slice}, window {kept.number} at {kept.start_ns} ns",
            flags=tuple(self._engine.flags.names(kept.flags)),
        )


def readable_hits(
    banks: Iterable[RawBank], hits_of: Callable[[Sequence[RawBank]], NDArray[np.void]], dtype: DTypeLike
) -> NDArray[np.void]:
    """The hits of a sub-slice; none of a bank that the kernels refuse, too."""
    found: list[NDArray[np.void]] = [np.empty(0, dtype)]
    for bank in banks:
        try:
            found.append(hits_of([bank]))
        except BankError:
            continue
    return np.concatenate(found)
