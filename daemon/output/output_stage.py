"""The output thread: makes the decisions of a computed batch, writes its kept events, then passes it on.

A failing disk holds the batch, so its slot, so the credits: the feeders wait, nothing is lost.
"""

import queue
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import EventStream
from hltnode.daemon.compute.engine_interface import Workspace
from hltnode.daemon.compute.pipeline import ComputedBatch, flags_of
from hltnode.daemon.event_building.run_summary import write_summary
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.daemon.output.event_encoder import EventEncoder
from hltnode.daemon.output.event_writer import EventWriter, OutputError
from hltnode.daemon.output.journal import Journal
from hltnode.daemon.output.recovery import revoke_events
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import line_words
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

ODIN_SOURCE = source_id(SubDetector.ODIN, 0)
_BANK_HEADER = np.dtype([("magic", "<u2"), ("size", "<u2"), ("type", "u1"), ("version", "u1"), ("source", "<u2")])

log = get_logger("output_stage")


@dataclass(frozen=True, slots=True)
class Results:
    """One row per event of a batch: accepted u8[n], lines u32[n, words], flags u32[n].

    Line i is bit i % 32 of word i // 32.
    """

    accepted: NDArray[np.uint8]
    lines: NDArray[np.uint32]
    flags: NDArray[np.uint32]
    objects: Mapping[str, int] = field(default_factory=dict)
    """What was found in all events together, by collection; empty without results."""


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
    results: Results
    decisions: list[MepDecision]
    events: list[KeptEvent]
    """Kept events for the sockets; empty if there are only files."""


@dataclass(frozen=True, slots=True)
class FinishFiles:
    """Request to give the files of a run their final names and to write its summary.

    With `run_ended` the MEPs of the run are removed from the journal; otherwise the run may continue in the next
    session.
    """

    summary: dict[str, Any]
    run_ended: bool


@dataclass(frozen=True, slots=True)
class RevokeEvents:
    """Request to remove the events of MEPs that another node builds now; those `in_slots` are not written yet."""

    run: int
    meps: frozenset[int]
    in_slots: frozenset[int]
    receipt: tuple[bytes, Revoked]


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
        workspaces: Sequence[Workspace],
        buffers: Sequence[memoryview],
        writer: EventWriter,
        journal: Journal,
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
        self._workspaces = workspaces
        self._buffers = buffers
        self._writer = writer
        self._journal = journal
        self._encoder = encoder
        self._done = done
        self._events_revoked = events_revoked
        self._revoked: set[int] = set()
        self._crashed = crashed
        self._node = node
        self._tck = tck
        self._n_lines = n_lines
        self._include_events = include_events
        self._queue: queue.SimpleQueue[ComputedBatch | FinishFiles | RevokeEvents | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hltnode-output", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, item: ComputedBatch | FinishFiles | RevokeEvents) -> None:
        """Queue a batch, the end of a run or a request to revoke events; any thread."""
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
                if isinstance(item, FinishFiles):
                    self._finish_run(item)
                elif isinstance(item, RevokeEvents):
                    self._revoke_events(item)
                else:
                    self._write(item)
            self._retry(self._writer.finish_files)
            left = self._writer.abandon()
            if left:
                log.critical("events_not_written", bytes=left)
            else:
                self._retry(self._journal.close)
        except BaseException as error:
            self._crashed(error)
            raise

    def _write(self, computed: ComputedBatch) -> None:
        batch = computed.batch
        results = self._results(computed)
        decisions = []
        events: list[KeptEvent] = []
        kept: list[tuple[int, dict[EventStream, int]]] = []
        first = 0
        for mep in batch.meps:
            of_mep = slice(first, first + mep.n_events)
            first += mep.n_events
            if mep.mep in self._revoked:
                self._revoked.discard(mep.mep)
                continue
            if mep.error_stream:
                results.accepted[of_mep] = 0
                results.lines[of_mep] = 0
            mine = Results(results.accepted[of_mep], results.lines[of_mep], results.flags[of_mep])
            decisions.append(self._decision(batch.run, mep, mine))
            events_of_mep = self._keep_events(batch.slot, batch.run, mep, mine)
            records = Counter(event.stream for event in events_of_mep)
            kept.append((mep.mep, {stream: records[stream] for stream in EventStream}))
            if self._include_events:
                events += events_of_mep
        self._journal.acknowledged_below(batch.run, batch.floor)
        if self._retry(lambda: self._flush(kept)) and self._retry(lambda: self._note(batch.run, kept)):
            self._done(WrittenBatch(computed, results, decisions, events))

    def _finish_run(self, item: FinishFiles) -> None:
        self._retry(self._writer.finish_files)
        if item.run_ended:
            self._retry(partial(self._journal.run_ended, item.summary["run"]))

        def summarise() -> None:
            directory = self._writer.directory
            try:
                write_summary(item.summary, directory, self._writer.prefix)
            except OSError as error:
                raise OutputError(directory, error) from error

        self._retry(summarise)

    def _revoke_events(self, request: RevokeEvents) -> None:
        """Remove the events from the files, which are finished first; the MEPs still in slots are skipped later."""
        self._revoked |= request.in_slots

        def remove() -> None:
            self._writer.finish_files()
            content = self._journal.content
            out_of_reach = revoke_events(self._writer.directory, content, request.run, set(request.meps))
            if out_of_reach:
                log.critical("events_out_of_reach", run=request.run, meps=sorted(out_of_reach))
            self._journal.compact()

        if self._retry(remove):
            self._events_revoked(request.receipt)

    def _flush(self, kept: list[tuple[int, dict[EventStream, int]]]) -> None:
        """Write; records dropped by a policy are the last ones, and do not count as kept."""
        for stream, dropped in self._writer.flush().items():
            for _, records in reversed(kept):
                gone = min(dropped, records[stream])
                records[stream] -= gone
                dropped -= gone

    def _note(self, run: int, kept: list[tuple[int, dict[EventStream, int]]]) -> None:
        self._journal.append(run, kept, self._writer.positions())

    def _results(self, computed: ComputedBatch) -> Results:
        if computed.error is None:
            output = self._workspaces[computed.batch.slot].output
            objects = {name: int(counts.sum(dtype=np.uint64)) for name, counts in output.counts.items()}
            return Results(output.accepted.copy(), output.lines.copy(), output.flags.copy(), objects)
        # Without results every event is kept, so that none is lost to a broken back end.
        n = computed.batch.n_events
        flags = np.concatenate(
            [
                np.full(mep.n_events, flags_of(mep) | EventFlag.BACKEND_ERROR, dtype=np.uint32)
                for mep in computed.batch.meps
            ]
        )
        return Results(np.ones(n, dtype=np.uint8), np.zeros((n, line_words(self._n_lines)), dtype=np.uint32), flags)

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

        Missing sources alone do not keep an event, unless its MEP goes to the error stream.
        """
        events: list[KeptEvent] = []
        to_error = results.flags if mep.error_stream else results.flags & ~np.uint32(EventFlag.INCOMPLETE)
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
            self._writer.append(stream, run, record)
            events.append(KeptEvent(stream, run, record))
        return events

    def _retry(self, write: Callable[[], None]) -> bool:
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
