"""Turns a computed batch into the decisions of its MEPs and its kept events as MDF records.

The result does not refer to the slot of the batch, so the slot can be filled again.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import CloseReason, EventStream, StreamTime, WindowCount, WindowFault
from hltnode.daemon.compute.pipeline import ComputedBatch
from hltnode.daemon.compute.results import Results
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.daemon.output.decision_lists import DecisionLists
from hltnode.daemon.output.event_encoder import Decided, EventEncoder
from hltnode.daemon.output.time_windows import TimeWindows, WindowTally, is_late
from hltnode.daemon.storage.record_block import RecordBlock
from hltnode.processing.framework.flags import FlagTable
from hltnode.protocol.transport.decisions import (
    DecisionGroup,
    MepDecision,
    SliceDecision,
    max_events_of_group,
    room_for_lists,
)

# Batches of two runs may be in the queue; a run has one trigger configuration.
MAX_ENCODERS = 2

log = get_logger("gathering")


@dataclass(frozen=True, slots=True)
class DecidedBatch:
    """A batch with its decisions: the first `n_sent` are sent, `n_late` of these after their deadline.

    to_error: u32[n], the flags for which an event goes to the error stream; 0: it does not. kept: u8[n], the sub-slices
    whose windows are kept, for a streaming chain.
    """

    computed: ComputedBatch
    decisions: Sequence[MepDecision | DecisionGroup]
    to_error: NDArray[np.uint32]
    lists_left_out: int
    kept: NDArray[np.uint8] | None = None
    n_sent: int = 0
    n_late: int = 0


@dataclass(frozen=True, slots=True)
class GatheredBatch:
    """A batch on its way to files and sockets; `nbytes` is the size of its records and decisions."""

    computed: ComputedBatch
    decisions: Sequence[MepDecision | DecisionGroup]
    events: Mapping[EventStream, Sequence[RecordBlock]]
    candidates_left_out: int
    """Number of selected candidates that did not fit into the reports of their events."""
    nbytes: int
    lists_left_out: int = 0
    """Number of output lists that did not fit into the decision messages of their MEPs."""
    not_stored: Mapping[EventStream, int] = field(default_factory=dict)
    """Number of kept events of the series that no files are written of."""
    unsent: Sequence[MepDecision | DecisionGroup] | None = None
    """The decisions that are not sent yet; None: all of them."""
    n_late: int = 0
    """Number of late decisions among those that are sent."""
    n_sent: int = 0
    """Number of messages that are sent; `without` does not take them back."""
    windows: WindowTally | None = None
    """Windows of a streaming chain."""

    @property
    def to_send(self) -> Sequence[MepDecision | DecisionGroup]:
        """The decisions that are not sent yet."""
        return self.decisions if self.unsent is None else self.unsent

    def without(self, meps: Collection[int]) -> "GatheredBatch":
        """The same batch without some MEPs."""
        return replace(
            self,
            decisions=_without(self.decisions, meps),
            unsent=None if self.unsent is None else _without(self.unsent, meps),
            events={
                stream: list(chain.from_iterable(block.without(meps) for block in blocks))
                for stream, blocks in self.events.items()
            },
        )


def _without(
    decisions: Sequence[MepDecision | DecisionGroup], meps: Collection[int]
) -> list[MepDecision | DecisionGroup]:
    return [part for decision in decisions for part in decision.without(meps)]


class EventGatherer:
    """Makes decisions and records.

    Args:
        buffers: the pinned input of each slot.
        encoder_of: makes the encoder of a trigger configuration from its key.
        flags: flags of the chain. They decide which events go to the error stream.
        lists: the output lists of decision messages.
        windows: the windows of a streaming chain. Its accepted events are records of windows; a message has one MEP.
        gathered: the series whose kept events are copied. stored: the series that go to files.
        keeps_events: False for a shadow node, which has decisions only.
        meps_per_message: most MEPs whose decisions share a message.
    """

    def __init__(
        self,
        buffers: Sequence[memoryview],
        encoder_of: Callable[[int], EventEncoder],
        flags: FlagTable,
        *,
        node: str,
        chain: str,
        n_lines: int,
        lists: DecisionLists | None = None,
        windows: TimeWindows | None = None,
        gathered: Collection[EventStream] = tuple(EventStream),
        stored: Collection[EventStream] = tuple(EventStream),
        keeps_events: bool = True,
        meps_per_message: int = 1,
    ) -> None:
        self._gathered = frozenset(gathered)
        self._stored = frozenset(stored)
        self._windows = windows
        self._meps_per_message = meps_per_message if windows is None else 1
        self._group_events = max_events_of_group(n_lines)
        self._keeps_events = keeps_events
        self._lists = lists or DecisionLists()
        self._buffers = buffers
        self._encoder_of = lru_cache(MAX_ENCODERS)(encoder_of)
        self._errors = np.uint32(flags.errors)
        self._node = node
        self._chain = chain
        self._n_lines = n_lines

    def decide(self, computed: ComputedBatch) -> DecidedBatch:
        """Make the decisions. No event of a MEP that goes to the error stream is accepted."""
        batch, results = computed.batch, computed.results
        to_error = results.flags & self._errors
        decisions: list[MepDecision | DecisionGroup] = []
        lists_left_out = 0
        kept = None if self._windows is None else np.zeros(len(to_error), np.uint8)
        first = 0
        for group in self._groups(batch.meps):
            mep = group[0]
            if len(group) > 1:
                begin, first = first, first + sum(each.n_events for each in group)
                decisions.append(self._group_decision(computed, group, results.of_events(slice(begin, first))))
                continue
            of_mep = slice(first, first + mep.n_events)
            first += mep.n_events
            if mep.error_stream:
                results.accepted[of_mep] = 0
                results.lines[of_mep] = 0
                to_error[of_mep] = results.flags[of_mep]
            of_events = results if len(batch.meps) == 1 else results.of_events(of_mep)
            lists, n_left_out = self._lists.encode(of_events.lists, mep.n_events, self._n_lines)
            lists_left_out += n_left_out
            decision = self._decision(computed, mep, of_events, lists)
            if self._windows is not None and kept is not None:
                if computed.windows_decided:
                    kept[of_mep] = of_events.lists[self._windows.name].counts != 0
                else:
                    kept[of_mep] = self._windows.kept(batch.run, mep, of_events, to_error[of_mep])
                room = room_for_lists(mep.n_events, self._n_lines) - len(lists)
                found = self._windows.encode(mep, of_events.lists[self._windows.name], kept[of_mep], room)
                decision = SliceDecision.of(decision, found)
            decisions.append(decision)
        return DecidedBatch(computed, decisions, to_error, lists_left_out, kept)

    def gather(self, of: ComputedBatch | DecidedBatch) -> GatheredBatch:
        """Gather the accepted events and the events for the error stream.

        Missing sources or an event cut alone do not keep an event, unless its whole MEP goes to the error stream.
        """
        decided = of if isinstance(of, DecidedBatch) else self.decide(of)
        computed, decisions = decided.computed, decided.decisions
        results = computed.results
        is_error = decided.to_error != 0
        kept = {EventStream.ACCEPTED: (results.accepted != 0) & ~is_error, EventStream.ERROR: is_error}
        events: dict[EventStream, Sequence[RecordBlock]] = {}
        not_stored: dict[EventStream, int] = {}
        left_out = 0
        tally = None if decided.kept is None else self._tally(decided, decided.kept)
        for stream, wanted in kept.items() if self._keeps_events else ():
            numbers = np.flatnonzero(wanted)
            if stream not in self._stored:
                not_stored[stream] = len(numbers)
            if tally is not None and stream is EventStream.ACCEPTED:
                if tally.counts[WindowCount.WINDOWS] and stream in self._gathered:
                    events[stream], tally = self._window_records(decided, tally)
            elif len(numbers) and stream in self._gathered:
                block, n_left_out = self._records(computed, numbers)
                events[stream] = [block]
                left_out += n_left_out
        nbytes = sum(block.nbytes for blocks in events.values() for block in blocks)
        nbytes += sum(decision.nbytes for decision in decisions)
        return GatheredBatch(
            # Its copy of the input is not needed any more.
            replace(computed, held=None) if computed.held is not None else computed,
            decisions,
            events,
            left_out,
            nbytes,
            decided.lists_left_out,
            not_stored,
            decisions[decided.n_sent :] if isinstance(of, DecidedBatch) else None,
            decided.n_late,
            decided.n_sent,
            tally,
        )

    def _groups(self, meps: Sequence[MepRecord]) -> Iterator[Sequence[MepRecord]]:
        """Consecutive MEPs whose decisions share a message: complete ones, up to the bounds of a message."""
        most = self._meps_per_message
        if most == 1:
            yield from ((mep,) for mep in meps)
            return
        group: list[MepRecord] = []
        n_events = 0
        for mep in meps:
            is_complete = mep.close_reason is CloseReason.COMPLETE and not mep.error_stream
            n_events += mep.n_events
            if group and (not is_complete or len(group) == most or n_events > self._group_events):
                yield group
                group, n_events = [], mep.n_events
            if is_complete:
                group.append(mep)
            else:
                yield (mep,)
                n_events = 0
        if group:
            yield group

    def _records(self, computed: ComputedBatch, numbers: NDArray[np.int64]) -> tuple[RecordBlock, int]:
        """Events of a batch as records, and the number of candidates that did not fit into their reports."""
        batch, results = computed.batch, computed.results
        encoded = self._encoder_of(computed.tck).encode_batch(
            self._input_of(computed),
            [(mep.n_events, mep.fragments) for mep in batch.meps],
            numbers,
            batch.run,
            Decided(results.lines, results.flags, results.counts, results.selected, results.lists, results.summary),
        )
        if encoded.banks_left_out:
            log.error("banks_left_out", run=batch.run, first_mep=batch.meps[0].mep, banks=encoded.banks_left_out)
        ends = np.cumsum([mep.n_events for mep in batch.meps])
        ids = np.fromiter((mep.mep for mep in batch.meps), np.uint64, len(batch.meps))
        meps = ids[np.searchsorted(ends, numbers, side="right")]
        return RecordBlock(batch.run, memoryview(encoded.data), encoded.ends, meps), encoded.candidates_left_out

    def _input_of(self, computed: ComputedBatch) -> memoryview:
        return self._buffers[computed.batch.slot] if computed.held is None else computed.held

    def _tally(self, decided: DecidedBatch, kept: NDArray[np.uint8]) -> WindowTally:
        """The windows of a batch before they are written."""
        assert self._windows is not None
        batch, results = decided.computed.batch, decided.computed.results
        content = results.lists[self._windows.name]
        counts = content.counts
        faults = self._windows.faults(content, (results.accepted != 0) & (decided.to_error == 0), kept)
        n_empty = faults[WindowFault.EMPTY]
        for fault, n in decided.computed.window_faults.items():
            faults[fault] += n
        left_out = [isinstance(each, SliceDecision) and self._windows.is_left_out(each) for each in decided.decisions]
        return WindowTally(
            {
                WindowCount.SLICES: len(batch.meps),
                WindowCount.LATE_SLICES: sum(map(is_late, batch.meps)),
                WindowCount.SLICE_BYTES: sum(int(mep.fragments[:, 2].sum()) for mep in batch.meps),
                WindowCount.WINDOWS: int(counts[kept != 0].sum()) - n_empty,
            },
            {
                **faults,
                WindowFault.MESSAGE_TOO_LARGE: sum(left_out),
            },
            self._windows.times(batch.meps),
        )

    def _window_records(self, decided: DecidedBatch, tally: WindowTally) -> tuple[list[RecordBlock], WindowTally]:
        """The hits in the windows of a batch as records."""
        assert self._windows is not None
        assert decided.kept is not None
        computed, results = decided.computed, decided.computed.results
        batch = computed.batch
        meps = [mep for mep in batch.meps if self._windows.is_slice(mep)]
        rows = np.repeat([self._windows.is_slice(mep) for mep in batch.meps], [mep.n_events for mep in batch.meps])
        windows = results.lists[self._windows.name]
        encoded = self._encoder_of(computed.tck).encode_windows(
            self._windows.layout,
            self._input_of(computed),
            [(mep.n_events, self._windows.hit_fragments(mep)) for mep in meps],
            np.fromiter((mep.mep for mep in meps), np.uint64, len(meps)),
            np.fromiter((bool(mep.missing) for mep in meps), np.uint8, len(meps)),
            batch.run,
            Decided(results.lines[rows], results.flags[rows], results.counts, results.selected),
            windows if len(meps) == len(batch.meps) else windows.of_rows(rows),
            decided.kept[rows],
        )
        block = RecordBlock(batch.run, memoryview(encoded.data), encoded.ends, encoded.slices)
        of_records = WindowTally(
            {
                **tally.counts,
                WindowCount.RECORDS: len(block),
                WindowCount.HITS: encoded.hits,
                WindowCount.BYTES: len(encoded.data),
            },
            {
                **tally.faults,
                WindowFault.CUT_OFF: encoded.cut_off,
                WindowFault.HIT_OUTSIDE: encoded.hits_outside,
                WindowFault.BYTES_LEFT: encoded.bytes_left,
            },
            {**tally.times, StreamTime.KEPT: encoded.kept_ns},
        )
        return [block] if len(block) else [], of_records

    def _group_decision(self, computed: ComputedBatch, group: Sequence[MepRecord], results: Results) -> DecisionGroup:
        return DecisionGroup(
            node=self._node,
            run=computed.batch.run,
            seq=0,
            n_lines=self._n_lines,
            tck=computed.tck,
            meps=np.array([mep.mep for mep in group], "<u8").tobytes(),
            first_events=np.array([mep.first_event for mep in group], "<u8").tobytes(),
            n_events=np.array([mep.n_events for mep in group], "<u2").tobytes(),
            accepted=np.packbits(results.accepted != 0, bitorder="little").tobytes(),
            lines=results.lines.astype("<u4").tobytes(),
            flags=results.flags.astype("<u4").tobytes(),
            chain=self._chain,
        )

    def _decision(self, computed: ComputedBatch, mep: MepRecord, results: Results, lists: bytes) -> MepDecision:
        return MepDecision(
            node=self._node,
            run=computed.batch.run,
            mep=mep.mep,
            seq=0,
            first_event=mep.first_event,
            n_events=mep.n_events,
            n_lines=self._n_lines,
            tck=computed.tck,
            close_reason=str(mep.close_reason),
            missing_sources=mep.missing,
            accepted=np.packbits(results.accepted != 0, bitorder="little").tobytes(),
            lines=results.lines.astype("<u4", copy=False).tobytes(),
            flags=results.flags.astype("<u4", copy=False).tobytes(),
            chain=self._chain,
            lists=lists,
        )
