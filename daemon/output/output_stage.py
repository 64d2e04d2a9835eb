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
from numpy.typing import NDArray

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.mep_ranges import as_ranges
from hltnode.daemon.common.vocabulary import EventStream
from hltnode.daemon.compute.pipeline import ComputedBatch
from hltnode.daemon.compute.results import Results
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.daemon.output.event_encoder import EventEncoder
from hltnode.daemon.storage.event_store import EventStore
from hltnode.daemon.storage.journal_content import Ranges
from hltnode.daemon.storage.output_directory import OutputError
from hltnode.processing.framework.flags import EventFlag
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.mfp import NO_BANK, Mfp
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import HEADER_SIZE as BANK_HEADER_SIZE
from hltnode.protocol.raw_data.raw_bank import MAGIC as BANK_MAGIC
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE, RawBank
from hltnode.protocol.raw_data.source_id import SubDetector, source_id
from hltnode.protocol.transport.decisions import MepDecision
from hltnode.protocol.transport.feeder_messages import Revoked

# A full disk seldom gets room within a second; more frequent retries would only count more write errors.
RETRY_SECONDS = 1.0

_NO_ERROR = np.uint32(EventFlag.INCOMPLETE | EventFlag.GLOBAL_EVENT_CUT)
"""Flags that do not make an event one for the error stream."""
ODIN_SOURCE = source_id(SubDetector.ODIN, 0)
_BANK_HEADER = np.dtype([("magic", "<u2"), ("size", "<u2"), ("type", "u1"), ("version", "u1"), ("source", "<u2")])

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
        first = 0
        for mep in batch.meps:
            of_mep = slice(first, first + mep.n_events)
            first += mep.n_events
            if (batch.run, mep.mep) in self._revoked:
                self._revoked.discard((batch.run, mep.mep))
                continue
            if mep.error_stream:
                results.accepted[of_mep] = 0
                results.lines[of_mep] = 0
            mine = Results(results.accepted[of_mep], results.lines[of_mep], results.flags[of_mep])
            decisions.append(self._decision(batch.run, mep, mine))
            events_of_mep = self._keep_events(batch.slot, batch.run, mep, mine)
            finished.append(mep.mep)
            if self._include_events:
                events += events_of_mep
        self._store.journal.content.acknowledged_below(batch.run, batch.floor)
        if self._retry(partial(self._store.commit, batch.run, as_ranges(finished))):
            self._done(WrittenBatch(computed, decisions, events))
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

    def _keep_events(self, slot: int, run: int, mep: MepRecord, results: Results) -> list[KeptEvent]:
        """Append accepted events, and those with a flag to the error stream.

        Missing sources or the global event cut alone do not keep an event, unless its MEP goes to the error stream.
        """
        events: list[KeptEvent] = []
        to_error = results.flags if mep.error_stream else results.flags & ~_NO_ERROR
        kept = np.flatnonzero((results.accepted != 0) | (to_error != 0)).tolist()
        if not kept:
            return events
        buffer = self._buffers[slot]
        mfps = [Mfp.parse(buffer[offset : offset + size]) for _, offset, size in sorted(mep.fragments)]
        too_large, bodies = encoded_banks(mfps, np.array(kept))
        if too_large:
            log.error("banks_too_large", run=run, mep=mep.mep, banks=too_large)
        times = _orbits_and_bunches(mfps, kept)
        for event, banks, (orbit, bunch_id) in zip(kept, bodies, times, strict=True):
            flags = int(results.flags[event])
            record = self._encoder.encode(
                run=run,
                orbit=orbit,
                bunch_id=bunch_id,
                banks=banks,
                accepted=bool(results.accepted[event]),
                lines=results.lines[event].tobytes(),
                flags=flags,
            )
            stream = EventStream.ERROR if to_error[event] else EventStream.ACCEPTED
            self._store.append(stream, run, mep.mep, record)
            events.append(KeptEvent(stream, run, record))
        return events

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


def encoded_banks(mfps: Sequence[Mfp], events: NDArray[np.int64]) -> tuple[int, list[bytes]]:
    """The raw banks of some events of a MEP, back to back as they fill an MDF record.

    Headers are made column by column: one bank costs two slices. Also returns how many banks were left out because a
    fragment of an MFP may be 8 bytes larger than what a bank with its header may have.
    """
    parts: list[list[bytes | memoryview]] = [[] for _ in range(len(events))]
    headers = np.empty(len(events), _BANK_HEADER)
    headers["magic"] = BANK_MAGIC
    too_large = 0
    for mfp in mfps:
        sizes = mfp.sizes[events].astype(np.int64)
        types = mfp.types[events]
        begins = mfp.offsets[events].astype(np.int64)
        fits = sizes <= MAX_PAYLOAD_SIZE
        too_large += len(events) - int(np.count_nonzero(fits))
        headers["size"] = np.where(fits, sizes + BANK_HEADER_SIZE, 0)
        headers["type"] = types
        headers["version"] = mfp.version
        headers["source"] = mfp.source_id
        of_column = headers.tobytes()
        view = mfp.view
        # Fragments are padded to 4 bytes at least, as banks are: the padding is copied too.
        ends = begins + (sizes + 3 & ~3)
        wanted = np.flatnonzero(fits & (types != NO_BANK)).tolist()
        for i, begin, end in zip(wanted, begins[wanted].tolist(), ends[wanted].tolist(), strict=True):
            of_event = parts[i]
            of_event.append(of_column[i * BANK_HEADER_SIZE : (i + 1) * BANK_HEADER_SIZE])
            of_event.append(view[begin:end])
    return too_large, [b"".join(of_event) for of_event in parts]


def _orbits_and_bunches(mfps: Sequence[Mfp], events: Sequence[int]) -> list[tuple[int, int]]:
    """Orbit and bunch id of some events for their MDF headers; 0, 0 where ODIN is missing or cannot be read."""
    for mfp in mfps:
        if mfp.source_id == ODIN_SOURCE:
            banks = mfp.banks()
            return [_orbit_and_bunch(banks[event]) for event in events]
    return [(0, 0)] * len(events)


def _orbit_and_bunch(bank: RawBank | None) -> tuple[int, int]:
    if bank is None:
        return 0, 0
    try:
        odin = decode_odin(bank)
    except ProtocolError:
        return 0, 0
    return odin.orbit, odin.bunch_id
