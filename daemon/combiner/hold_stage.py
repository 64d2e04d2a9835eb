"""The holding thread of a node: copies computed batches out of their slots, and lets them go with joined windows.

It is a delay line between the compute thread and the gathering thread. It owns the socket to the combiner. Nothing in
it is durable: a held slice is not acknowledged, so after a kill the feeders send it again. Its windows are in the files
before it is acknowledged, as the events of other chains.

Python works once for each slice, and NumPy on its windows.
"""

import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import zmq

from hltnode.client.keys import ClientKeys
from hltnode.daemon.combiner.combiner_link import CombinerLink
from hltnode.daemon.combiner.held_slices import HeldSlices, Leaving, SliceId
from hltnode.daemon.combiner.window_rows import Rows, WindowRows
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import HeldEnd, SeedFault, SilencePolicy, WindowFault
from hltnode.daemon.compute.pipeline import ComputedBatch
from hltnode.daemon.compute.results import Results
from hltnode.daemon.configuration.output_sections import CombinerSection
from hltnode.daemon.event_building.stimuli_and_effects import Batch, MepRecord
from hltnode.daemon.monitoring.counters import HeldCounters
from hltnode.daemon.output.requests import Request
from hltnode.daemon.output.time_windows import TimeWindows
from hltnode.processing.framework.flags import FlagTable
from hltnode.processing.framework.output_lists import joined_lists
from hltnode.protocol.transport.seed_messages import (
    ExternalWindow,
    Join,
    SliceSeeds,
    SliceWindows,
    decode_to_combiner,
    encode_to_combiner,
    rows_of,
)

RESEND_NS = 1_000_000_000
"""Seeds without an answer are sent again after this time: the connection may have been lost, or the combiner killed."""
LOOK_NS = RESEND_NS // 10
"""Period of the check for such seeds, which goes through all held batches."""
FULL_QUEUE_NS = 10_000_000
"""The same, while seeds are left because the queue was full."""
MAX_EXTERNAL = 1024
"""External windows that are remembered; of a further one, the oldest is forgotten."""
BYTES_OF_BATCH, BYTES_OF_SLICE, BYTES_OF_FRAGMENT = 4096, 2560, 32
"""Memory of a held batch, slice and fragment in addition to their arrays and messages: objects, tables of places."""
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("hold_stage")


@dataclass(slots=True)
class _HeldBatch:
    """A computed batch; messages: the seeds of each slice. `run`, `begin_ns`: time of its first slice."""

    computed: ComputedBatch
    messages: dict[SliceId, bytes]
    run: int = 0
    begin_ns: int = 0

    def rows(self, of: SliceId) -> Rows:
        """The seeds of a slice. A copy of them for each held slice would cost as much memory as its message."""
        message = decode_to_combiner(self.messages[of])
        assert isinstance(message, SliceSeeds)
        return rows_of(message.description, message.seeds)

    @property
    def nbytes(self) -> int:
        """Memory that it takes while it is held, without its raw data."""
        meps = self.computed.batch.meps
        return (
            BYTES_OF_BATCH
            + sum(BYTES_OF_SLICE + BYTES_OF_FRAGMENT * len(mep.fragments) for mep in meps)
            + self.computed.results.nbytes
            + sum(map(len, self.messages.values()))
        )


class HoldStage:
    """Holds batches from `start` to `stop`.

    Args:
        keys: CURVE keys for the combiner; None for a plain connection.
        rows, windows: of the chain. flags: decide which sub-slices go to the error stream.
        buffers: the pinned input of each slot.
        freed: called in the holding thread with each batch whose slot is free.
        hand_on: receives batches and requests, in the holding thread.
        crashed: called in the holding thread with an unexpected exception.
        max_slices: most held slices; the event builder tells apart a limited number of ids from the oldest one that is
            not acknowledged.
    """

    def __init__(
        self,
        section: CombinerSection,
        keys: ClientKeys | None,
        rows: WindowRows,
        windows: TimeWindows,
        flags: FlagTable,
        buffers: Sequence[memoryview],
        counters: HeldCounters,
        freed: Callable[[Batch], None],
        hand_on: Callable[[ComputedBatch | Request], None],
        crashed: Callable[[BaseException], None],
        *,
        node: str,
        session: str,
        chain: str,
        max_slices: int,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._section = section
        self._max_slices = max_slices
        self._rows = rows
        self._windows = windows
        self._errors = np.uint32(flags.errors)
        self._buffers = buffers
        self._counters = counters
        self._freed = freed
        self._hand_on = hand_on
        self._crashed = crashed
        self._node, self._session, self._chain = node, session, chain
        self._clock_ns = clock_ns
        assert section.endpoint is not None
        self._link = CombinerLink(section.endpoint, keys, counters, self._join, clock_ns)
        self._held: HeldSlices[_HeldBatch | Request, Rows] = HeldSlices(
            section.hold_ms * 1_000_000, section.timeout_ms * 1_000_000
        )
        self._external: list[ExternalWindow] = []
        self._changed = threading.Condition()
        self._stopping = False
        self._next_look_ns = 0
        self._newest = (0, 0)
        """Run and end of the latest slice that was taken, in ns."""
        counters.max_bytes = section.max_bytes
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._queue: queue.SimpleQueue[ComputedBatch | Request | None] = queue.SimpleQueue()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name="hltnode-hold", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, item: ComputedBatch | Request) -> None:
        """Queue a batch or a request; any thread."""
        self._queue.put(item)
        self._wake_up()

    def _wake_up(self) -> None:
        with self._changed:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def gathered(self, nbytes: int) -> None:
        """A batch that left is copied to records: its memory is free. Any thread."""
        with self._changed:
            self._counters.held_bytes -= nbytes
            self._changed.notify_all()

    def stop(self, timeout_s: float) -> bool:
        """Forget held batches, which are not acknowledged, hand on the requests, and end the thread.

        False on timeout.
        """
        if self._thread.is_alive():
            with self._changed:
                self._stopping = True
                self._changed.notify_all()
            self._queue.put(None)
            self._wake_up()
            self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        with self._changed:
            if self._wake >= 0:
                os.close(self._wake)
            self._wake = -1
        return True

    def _run(self) -> None:
        try:
            with zmq.Context() as context:
                self._link.open(context)
                try:
                    poller = zmq.Poller()
                    poller.register(self._link.socket, zmq.POLLIN)
                    poller.register(self._wake, zmq.POLLIN)
                    while self._turn(poller):
                        pass
                finally:
                    self._link.close()
            for item in self._held.abandon():
                if not isinstance(item, _HeldBatch):
                    self._hand_on(item)
        except BaseException as error:
            self._crashed(error)
            raise

    def _join(self) -> Join:
        """Who this node is, and from when on it holds slices of the latest run."""
        run, end_ns = self._newest
        # Slices are computed in the order in which they were built, not in the order of their times.
        of_run = (
            each.item.begin_ns
            for each in self._held
            if isinstance(each.item, _HeldBatch) and each.item.messages and each.item.run == run
        )
        return Join(self._node, self._session, self._chain, run, min(of_run, default=end_ns))

    def _turn(self, poller: zmq.Poller) -> bool:
        """One turn of the thread; False at its end."""
        now_ns = self._clock_ns()
        self._link.say_who(now_ns)
        due_ns, wait_ns = self._held.next_ns(), self._link.period_ns // 4
        if due_ns is not None:
            wait_ns = min(wait_ns, max(0, min(due_ns, self._next_look_ns) - now_ns))
        ready = dict(poller.poll(-(-wait_ns // 1_000_000)))
        if self._wake in ready:
            os.eventfd_read(self._wake)
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None:
                return False
            if isinstance(item, ComputedBatch):
                self._take(item)
            else:
                self._held.put(self._clock_ns(), item)
        if self._link.socket in ready:
            for message in self._link.read():
                if isinstance(message, ExternalWindow):
                    self._take_external(message)
                else:
                    self._answered(message)
        now_ns = self._clock_ns()
        self._send_again(now_ns)
        for leaving in self._held.due(now_ns):
            self._leave(leaving)
        self._link.note_silence(now_ns)
        self._counters.oldest_s = self._held.oldest_ns(now_ns) / 1e9
        self._note_held()
        return True

    def _take(self, computed: ComputedBatch) -> None:
        """Send the seeds of a batch, and hold it."""
        batch = computed.batch
        held = self._with_seeds(computed)
        is_sent = self._link.send_all(held.messages.values()) == len(held.messages)
        size = max((int((mep.fragments[:, 1:].sum(axis=1)).max(initial=0)) for mep in batch.meps), default=0)
        nbytes = size + held.nbytes
        if nbytes > self._section.max_bytes:
            # It cannot be held at all.
            while self._evict():
                pass
            self._leave(Leaving(held, 0, {}, HeldEnd.NO_ROOM))
            return
        if not self._make_room(nbytes, len(held.messages)):
            return
        raw = np.frombuffer(self._buffers[batch.slot], np.uint8)[:size].copy()
        held.computed = replace(held.computed, held=raw.data)
        self._freed(batch)
        now_ns = self._clock_ns()
        put = self._held.put(now_ns, held, nbytes, held.messages)
        if not is_sent:
            put.sent_ns = now_ns - RESEND_NS

    def _make_room(self, nbytes: int, n_slices: int = 0) -> bool:
        """Let the oldest batches leave until these bytes fit, and count them; False if the node stops meanwhile.

        Batches that left count until they are gathered: this waits for them, also for a disk that is full, and not
        yet held batches stay in their slots. A part of the memory is kept free for them, so that it seldom waits.
        """
        while not self._has_room(nbytes, n_slices) and self._evict():
            pass
        with self._changed:
            while not self._stopping and self._counters.held_bytes + nbytes > self._section.max_bytes:
                self._changed.wait()
            self._counters.held_bytes += 0 if self._stopping else nbytes
            return not self._stopping

    def _has_room(self, nbytes: int, n_slices: int = 0) -> bool:
        most = self._section.max_bytes
        return self._held.n_slices + n_slices <= self._max_slices and self._held.nbytes + nbytes <= most - most // 16

    def _evict(self) -> bool:
        """Let the oldest entry leave; False if nothing is held."""
        oldest = self._held.evict()
        if oldest is not None:
            self._leave(oldest)
        return oldest is not None

    def _with_seeds(self, computed: ComputedBatch) -> _HeldBatch:
        held = _HeldBatch(computed, {}, computed.batch.run)
        faults: Counter[WindowFault] = Counter()
        run, results = computed.batch.run, computed.results
        to_error = results.flags & self._errors
        for mep, rows in _rows_of(computed.batch.meps):
            of = results.of_events(rows)
            windows = of.lists[self._windows.name]
            kept = self._windows.kept(run, mep, of, to_error[rows])
            if mep.error_stream:
                kept[:] = 0
            else:
                is_accepted = (of.accepted != 0) & (to_error[rows] == 0)
                faults.update(self._windows.faults(windows, is_accepted, kept))
            if not self._windows.is_slice(mep) or not self._windows.is_of_its_run(mep):
                # Its time is not known, and the combiner would refuse its seeds.
                continue
            message = self._rows.seeds(run, mep, windows, kept)
            held.messages[run, mep.mep] = encode_to_combiner(message)
            begin_ns, end_ns = mep.mep * message.core_ns, (mep.mep + 1) * message.core_ns
            held.begin_ns = begin_ns if len(held.messages) == 1 else min(held.begin_ns, begin_ns)
            self._newest = run, max(end_ns, self._newest[1] if self._newest[0] == run else 0)
            self._counters.seeds_sent += len(rows_of(message.description, message.seeds))
            self._counters.faults[SeedFault.WHOLE_SLICE] += message.whole
        held.computed = replace(computed, window_faults=faults)
        return held

    def _leave(self, leaving: Leaving[_HeldBatch | Request, Rows]) -> None:
        """Decide the windows of a batch, and hand it on."""
        held = leaving.item
        if not isinstance(held, _HeldBatch):
            self._hand_on(held)
            return
        computed = held.computed
        # A batch may have no slice: no MEP at all after a revocation, or only MEPs that are margins.
        reason = leaving.end or HeldEnd.JOINED
        for of, message in held.messages.items():
            self._link.remember(message)
            self._counters.slices[HeldEnd.JOINED if of in leaving.windows else reason] += 1
        is_silent = bool(held.messages) and reason is not HeldEnd.JOINED
        if is_silent and (left_out := self._limit.due(reason)) is not None:
            log.warning(
                "slices_without_answer", reason=reason, windows=self._section.silent, run=computed.batch.run,
                first_slice=computed.batch.meps[0].mep, left_out=left_out,
            )  # fmt: skip
        decided = self._decided(held, leaving.windows)
        self._hand_on(replace(computed, results=decided, windows_decided=True, held_bytes=leaving.nbytes))

    def _decided(self, held: _HeldBatch, windows: dict[SliceId, Rows]) -> Results:
        """The results with the decided windows; accepted are the sub-slices in which one begins."""
        computed = held.computed
        batch, results = computed.batch, computed.results
        to_error = results.flags & self._errors
        parts = []
        for mep, rows in _rows_of(batch.meps):
            of = (batch.run, mep.mep)
            content = self._rows.empty(mep.n_events)
            if of in held.messages and not mep.error_stream:
                is_kept = self._section.silent is SilencePolicy.KEEP
                found = windows[of] if of in windows else held.rows(of) if is_kept else self._rows.no_rows
                external = [each for each in self._external if each.run == batch.run]
                content, bad = self._rows.content(mep, [found], external)
                self._counters.faults[SeedFault.BAD_WINDOW] += bad
            has_window = content.counts != 0
            # Events of the error stream keep what they have.
            accepted = results.accepted[rows]
            accepted[:] = has_window | ((accepted != 0) & (to_error[rows] != 0))
            results.lines[rows][accepted == 0] = 0
            parts.append(content)
        lists = {**results.lists, self._windows.name: joined_lists([*parts, self._rows.empty(0)])}
        return replace(results, lists=lists)

    def _send_again(self, now_ns: int) -> None:
        """Send the seeds without an answer again, and to a new session of the combiner also those of recent slices.

        What the queue does not take follows soon.
        """
        is_new = self._link.is_new_combiner
        if now_ns < self._next_look_ns and not is_new:
            return
        self._next_look_ns = now_ns + LOOK_NS
        is_full = not self._link.send_recent()
        for held in self._held.unanswered(now_ns, 0 if is_new else RESEND_NS):
            if not is_full:
                assert isinstance(held.item, _HeldBatch)
                messages = [held.item.messages[of] for of in sorted(held.waiting)]
                is_full = self._link.send_all(messages) < len(messages)
            if is_full and not is_new:
                # There may be tens of thousands of others, and the queue stays full while the combiner is away.
                break
            held.sent_ns = now_ns - RESEND_NS if is_full else now_ns
        if is_full and self._counters.combiner:
            self._next_look_ns = now_ns + FULL_QUEUE_NS

    def _answered(self, message: SliceWindows) -> None:
        if message.description != self._rows.description:
            self._counters.faults[SeedFault.BAD_MESSAGE] += 1
            return
        rows = rows_of(message.description, message.windows)
        of = (message.run, message.slice)
        if not self._held.waits(of):
            self._counters.faults[SeedFault.NOT_WAITING] += 1
            return
        self._counters.windows_received += len(rows)
        while not self._has_room(rows.nbytes) and not self._held.is_oldest(of):
            self._evict()
        if not self._has_room(rows.nbytes):
            # Its own batch must leave. It takes these windows along, which are not counted.
            self._held.answer(of, rows)
            self._evict()
        elif self._make_room(rows.nbytes):
            self._held.answer(of, rows, rows.nbytes)

    def _take_external(self, message: ExternalWindow) -> None:
        if message in self._external:
            return
        self._external.append(message)
        self._counters.external_windows += 1
        log.info("external_window", run=message.run, start_ns=message.start_ns, end_ns=message.end_ns)
        if len(self._external) > MAX_EXTERNAL:
            self._external.pop(0)
            self._counters.faults[SeedFault.EXTERNAL] += 1

    def _note_held(self) -> None:
        self._counters.held_slices = self._held.n_slices


def _rows_of(meps: Sequence[MepRecord]) -> list[tuple[MepRecord, slice]]:
    """Each slice with its rows in the results."""
    ends = np.cumsum([0, *(mep.n_events for mep in meps)]).tolist()
    return [(mep, slice(first, last)) for mep, first, last in zip(meps, ends[:-1], ends[1:], strict=True)]
