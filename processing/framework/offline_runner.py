"""Runs events through an engine without sockets, for `hltnode process` and `hltnode validate`.

Events are encoded as MFPs like those of a feeder, so kernels read the same bytes as in the node.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.batch import MFP_ALIGNMENT, MepInBatch
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.engine import Engine, Workspace
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.readout import AUTO
from hltnode.protocol.errors import MfpError, RejectReason
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import subdetector_of

WORKSPACES = 3
"""Number of workspaces: one fills, one computes, one is read out."""


@dataclass(frozen=True, slots=True)
class EncodedMep:
    """The MFPs of some events, arranged for one copy into a workspace."""

    events: Sequence[Sequence[RawBank]]
    data: NDArray[np.uint8]
    fragments: tuple[tuple[int, int, int], ...]
    """(source id, byte offset in `data`, bytes) of each MFP."""

    @property
    def n_events(self) -> int:
        return len(self.events)


@dataclass(frozen=True, slots=True)
class CompletedBatch:
    """MEPs with results in `workspace`, valid until the next batch is requested."""

    meps: Sequence[EncodedMep]
    workspace: Workspace


def encode_mep(
    chain: Chain, events: Sequence[Sequence[RawBank]], first_event_id: int = 0, encoding: str = AUTO
) -> EncodedMep:
    """Write those banks of some events that a chain reads as the MFPs of one MEP.

    Raises MfpError if the banks are inconsistent.
    """
    read = [[bank for bank in banks if _is_read(chain, bank)] for banks in events]
    mfps = chain.readout.mfps_of_events(read, first_event_id, encoding)
    pieces: list[bytes] = []
    fragments: list[tuple[int, int, int]] = []
    offset = 0
    for source, mfp in mfps.items():
        fragments.append((source, offset, len(mfp)))
        padding = -len(mfp) % MFP_ALIGNMENT
        pieces += (mfp, bytes(padding))
        offset += len(mfp) + padding
    return EncodedMep(events, np.frombuffer(b"".join(pieces), dtype=np.uint8), tuple(fragments))


def _is_read(chain: Chain, bank: RawBank) -> bool:
    source = chain.readout.source_of(bank)
    return source is not None and subdetector_of(source) in chain.subdetectors


def encode_meps(
    chain: Chain,
    events: Iterable[Sequence[RawBank]],
    events_per_mep: int,
    encoding: str = AUTO,
    max_bytes: int | None = None,
    first_event_id: int = 0,
) -> Iterator[EncodedMep]:
    """Write a stream of events as MEPs of `events_per_mep` events.

    A MEP has fewer events at the end, above `max_bytes`, or for banks of several versions. A single event may have more
    bytes.
    """
    iterator = iter(events)
    first = first_event_id
    while of_mep := list(islice(iterator, events_per_mep)):
        yield from _encode_in_parts(chain, of_mep, first, encoding, max_bytes)
        first += len(of_mep)


def _encode_in_parts(
    chain: Chain, events: Sequence[Sequence[RawBank]], first: int, encoding: str, max_bytes: int | None
) -> Iterator[EncodedMep]:
    """The events as one MEP, or split in halves while they have too many bytes or are inconsistent."""
    try:
        mep = encode_mep(chain, events, first, encoding)
        if max_bytes is None or mep.data.nbytes <= max_bytes or len(events) == 1:
            yield mep
            return
    except MfpError as error:
        if error.reason is not RejectReason.MISMATCH or len(events) == 1:
            raise
    half = len(events) // 2
    yield from _encode_in_parts(chain, events[:half], first, encoding, max_bytes)
    yield from _encode_in_parts(chain, events[half:], first + half, encoding, max_bytes)


def batches_of(meps: Iterable[EncodedMep], limits: BatchLimits) -> Iterator[list[EncodedMep]]:
    """Gather MEPs into batches within the limits. Raises ValueError for a MEP above the limits."""
    batch: list[EncodedMep] = []
    events = rows = nbytes = 0
    for mep in meps:
        if mep.n_events > limits.events or mep.data.nbytes > limits.input_bytes or len(mep.fragments) > limits.rows:
            raise ValueError(
                f"a MEP of {mep.n_events} events and {mep.data.nbytes} bytes does not fit in a batch of "
                f"{limits.events} events and {limits.input_bytes} bytes"
            )
        full = (
            len(batch) == limits.meps
            or events + mep.n_events > limits.events
            or rows + len(mep.fragments) > limits.rows
            or nbytes + mep.data.nbytes > limits.input_bytes
        )
        if full:
            yield batch
            batch, events, rows, nbytes = [], 0, 0, 0
        batch.append(mep)
        events += mep.n_events
        rows += len(mep.fragments)
        nbytes += mep.data.nbytes
    if batch:
        yield batch


class OfflineRunner:
    """Runs MEPs through an engine; fills one workspace while another computes.

    Raises BackendError if memory is short.
    """

    def __init__(self, engine: Engine, workspaces: int = WORKSPACES) -> None:
        self.engine = engine
        engine.require_memory(workspaces)
        self.workspaces = [engine.create_workspace() for _ in range(workspaces)]

    def warm_up(self, meps: Sequence[EncodedMep]) -> None:
        """Run some MEPs through every workspace, so that all memory is mapped. Raises BackendError."""
        first = next(batches_of(meps, self.engine.limits))
        with self._waits_at_its_end():
            for workspace in self.workspaces:
                _fill(workspace, first)
                workspace.submit()
                workspace.wait()

    def take_histogram_counts(self) -> NDArray[np.uint64]:
        """The histogram counts since the last call. Call it while no batch runs."""
        taken = [workspace.take_histogram_counts() for workspace in self.workspaces]
        total: NDArray[np.uint64] = np.sum(taken, axis=0, dtype=np.uint64)
        return total

    def run(self, meps: Iterable[EncodedMep]) -> Iterator[CompletedBatch]:
        """Run MEPs in order. Each result is valid until the next one is requested. Raises BackendError."""
        with self._waits_at_its_end():
            free = deque(self.workspaces)
            running: deque[CompletedBatch] = deque()
            for batch in batches_of(meps, self.engine.limits):
                if not free:
                    completed = running.popleft()
                    completed.workspace.wait()
                    yield completed
                    free.append(completed.workspace)
                workspace = free.popleft()
                _fill(workspace, batch)
                workspace.submit()
                running.append(CompletedBatch(batch, workspace))
            while running:
                completed = running.popleft()
                completed.workspace.wait()
                yield completed

    @contextmanager
    def _waits_at_its_end(self) -> Iterator[None]:
        """Wait for running batches at every end of a run, also after Ctrl-C: a batch must not lose its memory."""
        try:
            yield
        finally:
            for workspace in self.workspaces:
                workspace.wait()


def _fill(workspace: Workspace, batch: Sequence[EncodedMep]) -> None:
    placed: list[MepInBatch] = []
    offset = 0
    for mep in batch:
        workspace.input_data[offset : offset + mep.data.nbytes] = mep.data
        placed.append(
            MepInBatch(mep.n_events, [(source, offset + start, size) for source, start, size in mep.fragments])
        )
        offset += mep.data.nbytes
    workspace.seal(placed)
