"""The output thread: makes the decisions of a computed batch, writes its kept events, then passes it on.

A failing disk holds the batch, so its slot, so the credits: the feeders wait, nothing is lost.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import EventStream
from hltnode.daemon.compute.pipeline import ComputedBatch
from hltnode.daemon.compute.results import Results
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.daemon.output.event_encoder import Decided, EventEncoder
from hltnode.daemon.storage.event_store import EventStore
from hltnode.daemon.storage.journal_content import Ranges
from hltnode.daemon.storage.output_directory import OutputError
from hltnode.processing.framework.flags import EventFlag
from hltnode.protocol.transport.decisions import MepDecision
from hltnode.protocol.transport.feeder_messages import Revoked
from hltnode.protocol.transport.mep_ranges import as_ranges

# A full disk seldom gets room within a second; more frequent retries would only count more write errors.
RETRY_SECONDS = 1.0

_NO_ERROR = np.uint32(EventFlag.INCOMPLETE | EventFlag.GLOBAL_EVENT_CUT)
"""Flags that do not make an event one for the error stream."""

log = get_logger("output_stage")


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """An event that was accepted or carries a flag, as MDF record."""

    stream: EventStream
    run: int
    record: bytes


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """A batch whose kept events are written: its decisions may be sent and its MEPs acknowledged."""

    computed: ComputedBatch
    decisions: list[MepDecision]
    events: list[KeptEvent]
    """Kept events for the sockets; empty if there are only files."""
    candidates_left_out: int
    """Selected candidates that did not fit in the reports of their events."""


@dataclass(frozen=True, slots=True)
class FinishFiles:
    """Request to give the files of a run their final names and to write its summary.

    With `run_ended` all its files are finished and its MEPs are removed from the journal; otherwise the run may
    continue in the next session, and files with MEPs that a feeder may revoke keep their .part names.
    """

    summary: dict[str, Any]
    run_ended: bool


@dataclass(frozen=True, slots=True)
class Supervised:
    """A feeder may revoke MEPs of the run: its files keep their .part names until their MEPs are confirmed.

    To be submitted before the first batch of the run.
    """

    run: int


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Every feeder has confirmed all MEPs of the run below this id: none of them can be revoked any more."""

    run: int
    below: int


@dataclass(frozen=True, slots=True)
class RevokeEvents:
    """Request to remove the events of MEPs that another node builds now, given as (first, last) ranges.

    Those `in_slots` are not written yet.
    """

    run: int
    meps: Ranges
    in_slots: frozenset[int]
    receipt: tuple[bytes, Revoked]


Request = FinishFiles | Supervised | Confirmed | RevokeEvents


class OutputStage:
    """Writes the kept events of batches and makes their decisions.

    Args:
        buffers: the pinned input of each slot, to read the kept events from.
        include_events: whether written batches include their kept events, for outputs over sockets.
        done: called in the output thread with each batch that is written.
        events_revoked: called in the output thread with the receipt of a request that was carried out.
        crashed: called in the output thread with an unexpected exception.
    """

    def __init__(
        self,
        buffers: Sequence[memoryview],
        store: EventStore,
        encoder: EventEncoder,
        done: Callable[[WrittenBatch], None],
        events_revoked: Callable[[tuple[bytes, Revoked]], None],
        crashed: Callable[[BaseException], None],
        *,
        node: str,
        tck: int,
        n_lines: int,
        include_events: bool,
    ) -> None:
        self._buffers = buffers
        self._store = store
        self._encoder = encoder
        self._done = done
        self._events_revoked = events_revoked
        self._revoked: set[tuple[int, int]] = set()
        self._crashed = crashed
        self._node = node
        self._tck = tck
        self._n_lines = n_lines
        self._include_events = include_events
        self._queue: queue.SimpleQueue[ComputedBatch | Request | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hltnode-output", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, item: ComputedBatch | Request) -> None:
        """Queue a batch or a request; any thread."""
        self._queue.put(item)

    def stop(self, timeout_s: float) -> bool:
        """Write what is queued, finish the files and end the thread; False if it could not be written."""
        if not self._thread.is_alive():
            return True
        self._queue.put(None)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._stopping.set()
            self._thread.join(timeout_s)
        return not self._stopping.is_set()

    def _run(self) -> None:
        try:
            while (item := self._queue.get()) is not None:
                self._take(item)
            self._retry(self._store.close)
            left = self._store.abandon()
            if left:
                log.critical("events_not_written", bytes=left)
        except BaseException as error:
            self._crashed(error)
            raise

    def _take(self, item: ComputedBatch | Request) -> None:
        match item:
            case FinishFiles():
                self._finish_run(item)
            case Supervised():
                self._store.supervise(item.run)
            case Confirmed():
                self._retry(partial(self._store.confirm, item.run, item.below))
            case RevokeEvents():
                self._revoke_events(item)
            case _:
                self._write(item)

    def _write(self, computed: ComputedBatch) -> None:
        batch = computed.batch
        results = computed.results
        decisions = []
        events: list[KeptEvent] = []
        finished: list[int] = []
        first = left_out = 0
        for mep in batch.meps:
            of_mep = slice(first, first + mep.n_events)
            first += mep.n_events
            if (batch.run, mep.mep) in self._revoked:
                self._revoked.discard((batch.run, mep.mep))
                continue
            if mep.error_stream:
                results.accepted[of_mep] = 0
                results.lines[of_mep] = 0
            mine = results.of_events(of_mep)
            decisions.append(self._decision(batch.run, mep, mine))
            events_of_mep, n_left_out = self._keep_events(batch.slot, batch.run, mep, mine)
            left_out += n_left_out
            finished.append(mep.mep)
            events += events_of_mep
        self._store.journal.content.acknowledged_below(batch.run, batch.floor)
        if self._retry(partial(self._store.commit, batch.run, as_ranges(finished))):
            self._done(WrittenBatch(computed, decisions, events, left_out))
            self._retry(self._store.finish_files)

    def _finish_run(self, item: FinishFiles) -> None:
        finish = self._store.end_run if item.run_ended else self._store.leave_run
        self._retry(partial(finish, item.summary["run"]))
        self._retry(partial(self._store.write_summary, item.summary))

    def _revoke_events(self, request: RevokeEvents) -> None:
        """The events do not stay in the files; the MEPs still in slots are skipped later.

        A MEP may have been written since the request was made, before its slot was free: that one is in the files, and
        must not be skipped when it is sent here again.
        """
        written = self._store.journal.content.finished_of(request.run, request.in_slots)
        self._revoked |= {(request.run, mep) for mep in request.in_slots - written}
        if self._retry(partial(self._store.revoke, request.run, request.meps)):
            self._events_revoked(request.receipt)

    def _decision(self, run: int, mep: MepRecord, results: Results) -> MepDecision:
        return MepDecision(
            node=self._node,
            run=run,
            mep=mep.mep,
            seq=0,
            first_event=mep.first_event,
            n_events=mep.n_events,
            n_lines=self._n_lines,
            tck=self._tck,
            close_reason=str(mep.close_reason),
            missing_sources=mep.missing,
            accepted=np.packbits(results.accepted != 0, bitorder="little").tobytes(),
            lines=results.lines.astype("<u4").tobytes(),
            flags=results.flags.astype("<u4").tobytes(),
        )

    def _keep_events(self, slot: int, run: int, mep: MepRecord, results: Results) -> tuple[list[KeptEvent], int]:
        """Append accepted events, and those with a flag to the error stream. Returns them where sockets want them, and
        how many candidates did not fit in the reports of their events.

        Missing sources or the global event cut alone do not keep an event, unless its MEP goes to the error stream.
        """
        to_error = results.flags if mep.error_stream else results.flags & ~_NO_ERROR
        kept = np.flatnonzero((results.accepted != 0) | (to_error != 0))
        if not len(kept):
            return [], 0
        decided = Decided(results.lines, results.flags, results.counts)
        encoded = self._encoder.encode_mep(self._buffers[slot], mep.fragments, kept, run, decided)
        if encoded.banks_too_large:
            log.error("banks_too_large", run=run, mep=mep.mep, banks=encoded.banks_too_large)
        events = []
        for record, error in zip(encoded.records(), (to_error[kept] != 0).tolist(), strict=True):
            stream = EventStream.ERROR if error else EventStream.ACCEPTED
            self._store.append(stream, run, mep.mep, record)
            if self._include_events:
                # A copy: a queue for a slow consumer must not hold the other events of the MEP in memory.
                events.append(KeptEvent(stream, run, bytes(record)))
        return events, encoded.candidates_left_out

    def _retry(self, write: Callable[[], object]) -> bool:
        """Retry until `write` succeeds; False if the node stops first."""
        while True:
            try:
                write()
            except OutputError:
                if self._stopping.wait(RETRY_SECONDS):
                    return False
            else:
                return True
