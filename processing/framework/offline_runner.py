"""Runs events through an engine without sockets, for `hltnode process` and `hltnode validate`.

Events are encoded as MFPs like those of a feeder, so kernels read the same bytes as in the node.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain as chained
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.batch import MFP_ALIGNMENT, MepInBatch
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.framework.workspace import Workspace
from hltnode.protocol.errors import MfpError, RejectReason
from hltnode.protocol.event_table import EventTable, as_tables, grouped
from hltnode.protocol.mfp_packing import MeasuredMep, MfpPacker
from hltnode.protocol.raw_data.raw_bank import RawBank

_Item = TypeVar("_Item")
MAX_HELD_BYTES = 128 << 20
"""Memory of the events of a MEP or a batch. A record of 1 kB can unpack to 1 MB."""

WORKSPACES = 3
"""Number of workspaces: one fills, one computes, one is read out."""


@dataclass(frozen=True, slots=True)
class EncodedMep:
    """The MFPs of some events, arranged for one copy into a workspace."""

    events: EventTable
    data: NDArray[np.uint8]
    fragments: Sequence[tuple[int, int, int]] | NDArray[np.int64]
    """(source id, byte offset in `data`, bytes) of each MFP; an array i64[n, 3] costs no time per MFP in a batch."""
    unknown_types: frozenset[int] = frozenset()
    """Types of banks whose source is not known; they are not read."""

    @property
    def n_events(self) -> int:
        return len(self.events)

    @property
    def held_bytes(self) -> int:
        """Memory of its events and its data in bytes."""
        return self.data.nbytes + self.events.held_bytes


@dataclass(frozen=True, slots=True)
class CompletedBatch:
    """MEPs with results in `workspace`, valid until the next batch is requested."""

    meps: Sequence[EncodedMep]
    workspace: Workspace


def bounded_groups(
    items: Iterable[_Item], n: int, size_of: Callable[[_Item], int], max_bytes: int
) -> Iterator[list[_Item]]:
    """Consecutive items in groups of `n`; a group ends earlier with the item that reaches `max_bytes`."""
    group: list[_Item] = []
    n_bytes = 0
    for item in items:
        group.append(item)
        n_bytes += size_of(item)
        if len(group) == n or n_bytes >= max_bytes:
            yield group
            group, n_bytes = [], 0
    if group:
        yield group


class MepEncoder:
    """Writes those banks of events that a chain reads as the MFPs of MEPs.

    encoding: banks to read if events hold the same hits twice, AUTO for the choice by event.
    """

    def __init__(self, chain: Chain, encoding: str = AUTO) -> None:
        chosen = None if encoding == AUTO else encoding
        self._packer = MfpPacker(chain.readout, chosen, chain.subdetectors, MFP_ALIGNMENT)
        self._known_without_source = chain.readout.truth_types | chain.readout.types_not_read_out

    def encode(self, events: EventTable, first_event_id: int = 0) -> EncodedMep:
        """The events as one MEP. Raises MfpError if the banks are inconsistent."""
        return self._packed(self._packer.measure(events, first_event_id), first_event_id)

    def encode_in_parts(self, events: EventTable, first_event_id: int, max_bytes: int | None) -> Iterator[EncodedMep]:
        """The events as one MEP, or split in halves while they have more bytes or banks of several versions.

        Raises MfpError if the banks of one event are inconsistent.
        """
        try:
            measured = self._packer.measure(events, first_event_id)
        except MfpError as error:
            if error.reason is not RejectReason.MISMATCH or len(events) == 1:
                raise
        else:
            if max_bytes is None or measured.nbytes <= max_bytes or len(events) == 1:
                yield self._packed(measured, first_event_id)
                return
        half = len(events) // 2
        yield from self.encode_in_parts(events[:half], first_event_id, max_bytes)
        yield from self.encode_in_parts(events[half:], first_event_id + half, max_bytes)

    def _packed(self, measured: MeasuredMep, first_event_id: int) -> EncodedMep:
        data = self._packer.pack(measured, first_event_id)
        fragments = np.array([measured.sources, measured.places, measured.sizes], np.int64).T
        unknown = measured.types_without_source - self._known_without_source
        return EncodedMep(measured.events, data, fragments, unknown)


def encode_mep(
    chain: Chain, events: Sequence[Sequence[RawBank]], first_event_id: int = 0, encoding: str = AUTO
) -> EncodedMep:
    """Write those banks of some events that a chain reads as the MFPs of one MEP.

    Raises MfpError if the banks are inconsistent.
    """
    table = events if isinstance(events, EventTable) else EventTable.of_events(events)
    return MepEncoder(chain, encoding).encode(table, first_event_id)


def encode_meps(
    chain: Chain,
    events: Iterable[EventTable | Sequence[RawBank]],
    events_per_mep: int,
    encoding: str = AUTO,
    max_bytes: int | None = None,
    first_event_id: int = 0,
) -> Iterator[EncodedMep]:
    """Write a stream of events as MEPs of `events_per_mep` events.

    A MEP has fewer events at the end, above `max_bytes` or MAX_HELD_BYTES, or for banks of several versions. A single
    event may have more bytes. Events come in tables, or one by one.
    """
    encoder = MepEncoder(chain, encoding)
    first = first_event_id
    for of_mep in grouped(as_tables(events), events_per_mep, MAX_HELD_BYTES):
        yield from encoder.encode_in_parts(of_mep, first, max_bytes)
        first += len(of_mep)


def encode_slices(
    chain: Chain, events: Iterable[EventTable | Sequence[RawBank]], core: int, encoding: str = AUTO
) -> Iterator[EncodedMep]:
    """Write a stream of sub-slices of a streaming chain as time slices of `core` ones between those of neighbours.

    The stream begins and ends with margins, which belong to no slice. A sub-slice is between the margins of one slice.
    """
    if chain.streaming is None:
        raise ValueError(f"chain {chain.name} does not cut time into slices")
    encoder = MepEncoder(chain, encoding)
    margins, number = chain.streaming.margins, 0
    waiting: list[Sequence[RawBank]] = []
    for banks in chained.from_iterable(as_tables(events)):
        waiting.append(banks)
        if len(waiting) == core + margins:
            yield encoder.encode(EventTable.of_events(waiting), number)
            waiting, number = waiting[core:], number + 1
    if len(waiting) > margins:
        yield encoder.encode(EventTable.of_events(waiting), number)


def batches_of(meps: Iterable[EncodedMep], limits: BatchLimits) -> Iterator[list[EncodedMep]]:
    """Gather MEPs into batches within the limits. Raises ValueError for a MEP above the limits."""
    batch: list[EncodedMep] = []
    events = rows = nbytes = held = 0
    for mep in meps:
        if (
            mep.n_events > min(limits.events, limits.events_per_mep)
            or mep.data.nbytes > limits.input_bytes
            or len(mep.fragments) > limits.rows
        ):
            raise ValueError(
                f"a MEP of {mep.n_events} events and {mep.data.nbytes} bytes does not fit in a batch of "
                f"{limits.events} events, at most {limits.events_per_mep} of a MEP, and {limits.input_bytes} bytes"
            )
        full = (
            len(batch) == limits.meps
            or events + mep.n_events > limits.events
            or rows + len(mep.fragments) > limits.rows
            or nbytes + mep.data.nbytes > limits.input_bytes
            or held >= MAX_HELD_BYTES
        )
        if full:
            yield batch
            batch, events, rows, nbytes, held = [], 0, 0, 0, 0
        batch.append(mep)
        events += mep.n_events
        rows += len(mep.fragments)
        nbytes += mep.data.nbytes
        held += mep.held_bytes
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
                self.fill(workspace, first)
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
                self.fill(workspace, batch)
                workspace.submit()
                running.append(CompletedBatch(batch, workspace))
            while running:
                completed = running.popleft()
                completed.workspace.wait()
                yield completed

    def fill(self, workspace: Workspace, batch: Sequence[EncodedMep]) -> None:
        """Copy the MEPs of a batch into a workspace, which may run then."""
        placed: list[MepInBatch] = []
        offset = 0
        for mep in batch:
            workspace.input_data[offset : offset + mep.data.nbytes] = mep.data
            places = np.array(mep.fragments, np.int64).reshape(-1, 3)
            places[:, 1] += offset
            placed.append(MepInBatch(mep.n_events, places))
            offset += mep.data.nbytes
        workspace.seal(placed)

    @contextmanager
    def _waits_at_its_end(self) -> Iterator[None]:
        """Wait for running batches at every end of a run, also after Ctrl-C: a batch must not lose its memory."""
        try:
            yield
        finally:
            for workspace in self.workspaces:
                workspace.wait()
