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
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import zmq

from hltnode.client.keys import ClientKeys
from hltnode.daemon.combiner.held_slices import HeldSlices, Leaving, SliceId
from hltnode.daemon.combiner.window_rows import Rows, WindowRows
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import HeldEnd, SeedFault, SilencePolicy, WindowFault
from hltnode.daemon.common.zmq_sockets import ACKNOWLEDGED_WITHIN_MS, BOUND
from hltnode.daemon.compute.pipeline import ComputedBatch
from hltnode.daemon.compute.results import Results
from hltnode.daemon.configuration.output_sections import CombinerSection
from hltnode.daemon.event_building.stimuli_and_effects import Batch, MepRecord
from hltnode.daemon.monitoring.counters import HeldCounters
from hltnode.daemon.output.requests import Request
from hltnode.daemon.output.time_windows import TimeWindows
from hltnode.processing.framework.flags import FlagTable
from hltnode.processing.framework.output_lists import joined_lists
from hltnode.protocol.errors import MessageError
from hltnode.protocol.transport.endpoints import is_ipv6
from hltnode.protocol.transport.seed_messages import (
    MAX_SEED_MESSAGE,
    ExternalWindow,
    Joined,
    NotJoined,
    SliceWindows,
    decode_from_combiner,
    encode_to_combiner,
    rows_of,
)
from hltnode.protocol.transport.seed_messages import Join as JoinMessage

JOIN_NS = 1_000_000_000
"""Period of the message that says who this node is."""
RESEND_NS = 1_000_000_000
"""Seeds without an answer are sent again after this time: the connection may have been lost, or the combiner killed."""
LOOK_NS = RESEND_NS // 10
"""Period of the look for such seeds, which goes through all held batches."""
QUEUE = 1000
"""Messages that wait for the combiner. More seeds are sent later."""
RECENT_SLICES, RECENT_BYTES = 256, 4 << 20
"""Seeds of slices that left, which another session of the combiner needs to decide on the slices behind them."""
MAX_EXTERNAL = 1024
"""External windows that are remembered; of a further one, the oldest is forgotten."""
TURN = 100
"""Messages of the combiner that are read before batches are looked after."""
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("hold_stage")


@dataclass(slots=True)
class _HeldBatch:
    """A computed batch; messages, rows: the seeds of each slice."""

    computed: ComputedBatch
    messages: dict[SliceId, bytes]
    rows: dict[SliceId, Rows]


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
        self._keys = keys
        self._rows = rows
        self._windows = windows
        self._errors = np.uint32(flags.errors)
        self._buffers = buffers
        self._counters = counters
        self._freed = freed
        self._hand_on = hand_on
        self._crashed = crashed
        self._join = encode_to_combiner(JoinMessage(node, session, chain))
        self._clock_ns = clock_ns
        self._held: HeldSlices[_HeldBatch | Request, Rows] = HeldSlices(
            section.hold_ms * 1_000_000, section.timeout_ms * 1_000_000
        )
        self._external: list[ExternalWindow] = []
        self._in_gathering = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._joined_ns: int | None = None
        self._recent: deque[bytes] = deque()
        self._recent_bytes = 0
        self._is_new_combiner = False
        self._is_refused = False
        self._next_look_ns = 0
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
            self._in_gathering -= nbytes
            self._changed.notify_all()
        self._note_held()

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
            with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
                self._connect(socket)
                poller = zmq.Poller()
                poller.register(socket, zmq.POLLIN)
                poller.register(self._wake, zmq.POLLIN)
                while self._turn(poller, socket):
                    pass
            for item in self._held.abandon():
                if not isinstance(item, _HeldBatch):
                    self._hand_on(item)
        except BaseException as error:
            self._crashed(error)
            raise

    def _connect(self, socket: zmq.Socket[bytes]) -> None:
        assert self._section.endpoint is not None
        options = {
            **BOUND,
            zmq.TCP_MAXRT: ACKNOWLEDGED_WITHIN_MS,
            zmq.LINGER: 0,
            # Without a connection, nothing is queued: it would be old when the combiner is there.
            zmq.IMMEDIATE: 1,
            zmq.SNDHWM: QUEUE,
            zmq.RCVHWM: QUEUE,
            zmq.MAXMSGSIZE: MAX_SEED_MESSAGE,
            zmq.IPV6: is_ipv6(self._section.endpoint),
            zmq.RECONNECT_IVL_MAX: 1000,
        }
        for option, value in options.items():
            socket.setsockopt(option, value)
        if self._keys is not None:
            self._keys.apply(socket)
        socket.connect(self._section.endpoint)

    def _turn(self, poller: zmq.Poller, socket: zmq.Socket[bytes]) -> bool:
        """One turn of the thread; False at its end."""
        now_ns = self._clock_ns()
        period_ns = JOIN_NS if self._counters.combiner and not self._is_refused else JOIN_NS // 20
        if self._joined_ns is None or now_ns - self._joined_ns >= period_ns:
            self._joined_ns, self._is_refused = now_ns, False
            self._send(socket, self._join)
        due_ns = self._held.next_ns()
        longest_ns = period_ns // 4
        wait_ns = longest_ns if due_ns is None else min(max(0, due_ns - now_ns), longest_ns)
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
                self._take(item, socket)
            else:
                self._held.put(self._clock_ns(), item)
        if socket in ready:
            self._read(socket)
        now_ns = self._clock_ns()
        self._send_again(socket, now_ns)
        for leaving in self._held.due(now_ns):
            self._leave(leaving)
        self._note_held()
        return True

    def _take(self, computed: ComputedBatch, socket: zmq.Socket[bytes]) -> None:
        """Send the seeds of a batch, and hold it."""
        batch = computed.batch
        held = self._with_seeds(computed)
        for message in held.messages.values():
            self._send(socket, message)
        size = max((int((mep.fragments[:, 1:].sum(axis=1)).max(initial=0)) for mep in batch.meps), default=0)
        nbytes = size + sum(len(each) for each in held.messages.values())
        if nbytes > self._section.max_bytes:
            # It cannot be held at all.
            while (oldest := self._held.evict()) is not None:
                self._leave(oldest)
            self._leave(Leaving(held, 0, {}, HeldEnd.NO_ROOM))
            return
        if not self._make_room(nbytes):
            return
        raw = np.frombuffer(self._buffers[batch.slot], np.uint8)[:size].copy()
        held.computed = replace(held.computed, held=raw.data, held_bytes=nbytes)
        self._freed(batch)
        self._held.put(self._clock_ns(), held, nbytes, held.messages)

    def _make_room(self, nbytes: int) -> bool:
        """Let the oldest batches leave until this number of bytes fits; False if the node stops meanwhile.

        If only batches are left that wait for the disk, the batch stays in its slot until they are gathered.
        """
        while (
            self._held.n_slices >= self._max_slices
            or self._held.nbytes + self._in_gathering + nbytes > self._section.max_bytes
        ):
            oldest = self._held.evict()
            if oldest is not None:
                self._leave(oldest)
                continue
            with self._changed:
                while not self._stopping and self._in_gathering + nbytes > self._section.max_bytes:
                    self._changed.wait()
                if self._stopping:
                    return False
        return True

    def _with_seeds(self, computed: ComputedBatch) -> _HeldBatch:
        held = _HeldBatch(computed, {}, {})
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
            found = held.rows[run, mep.mep] = rows_of(message.description, message.seeds)
            self._counters.seeds_sent += len(found)
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
            self._remember(message)
            self._counters.slices[HeldEnd.JOINED if of in leaving.windows else reason] += 1
        is_silent = bool(held.messages) and reason is not HeldEnd.JOINED
        if is_silent and (left_out := self._limit.due(reason)) is not None:
            log.warning(
                "slices_without_answer", reason=reason, windows=self._section.silent, run=computed.batch.run,
                first_slice=computed.batch.meps[0].mep, left_out=left_out,
            )  # fmt: skip
        with self._changed:
            self._in_gathering += leaving.nbytes
        self._hand_on(replace(computed, results=self._decided(held, leaving.windows), windows_decided=True))

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
                found = windows[of] if of in windows else held.rows[of] if is_kept else held.rows[of][:0]
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

    def _send_again(self, socket: zmq.Socket[bytes], now_ns: int) -> None:
        """Send the seeds without an answer again, and to a new session of the combiner also those of recent slices."""
        if now_ns < self._next_look_ns and not self._is_new_combiner:
            return
        self._next_look_ns = now_ns + LOOK_NS
        if self._is_new_combiner:
            for message in self._recent:
                self._send(socket, message)
        for held in self._held.unanswered(now_ns, 0 if self._is_new_combiner else RESEND_NS):
            assert isinstance(held.item, _HeldBatch)
            for of in sorted(held.waiting):
                self._send(socket, held.item.messages[of])
        self._is_new_combiner = False

    def _remember(self, message: bytes) -> None:
        self._recent.append(message)
        self._recent_bytes += len(message)
        while len(self._recent) > RECENT_SLICES or self._recent_bytes > RECENT_BYTES:
            self._recent_bytes -= len(self._recent.popleft())

    def _send(self, socket: zmq.Socket[bytes], message: bytes) -> None:
        if not self._counters.combiner and message is not self._join:
            # A combiner takes no seeds of a node that has not joined.
            self._counters.faults[SeedFault.UNSENT] += 1
            return
        try:
            socket.send(message, zmq.NOBLOCK)
        except zmq.Again:
            if message is not self._join:
                self._counters.faults[SeedFault.UNSENT] += 1

    def _read(self, socket: zmq.Socket[bytes]) -> None:
        for _ in range(TURN):
            try:
                raw = socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                message = decode_from_combiner(raw)
            except MessageError as error:
                self._counters.faults[SeedFault.BAD_MESSAGE] += 1
                self._warn("combiner_message_refused", str(error))
                continue
            match message:
                case SliceWindows():
                    self._answered(message)
                case ExternalWindow():
                    self._take_external(message)
                case Joined():
                    self._meet(message)
                case NotJoined():
                    self._counters.faults[SeedFault.REFUSED] += 1
                    self._warn("combiner_refuses", message.text)
                    # It may be another session, which does not know this node yet: join soon, but not at once. A
                    # combiner that refuses the node for good would be asked again and again.
                    self._is_refused = True

    def _answered(self, message: SliceWindows) -> None:
        if message.description != self._rows.description:
            self._counters.faults[SeedFault.BAD_MESSAGE] += 1
            return
        rows = rows_of(message.description, message.windows)
        if self._held.answer((message.run, message.slice), rows):
            self._counters.windows_received += len(rows)
        else:
            self._counters.faults[SeedFault.NOT_WAITING] += 1

    def _take_external(self, message: ExternalWindow) -> None:
        if message in self._external:
            return
        self._external.append(message)
        self._counters.external_windows += 1
        log.info("external_window", run=message.run, start_ns=message.start_ns, end_ns=message.end_ns)
        if len(self._external) > MAX_EXTERNAL:
            self._external.pop(0)
            self._counters.faults[SeedFault.EXTERNAL] += 1

    def _meet(self, message: Joined) -> None:
        if message.session != self._counters.combiner:
            log.info("combiner_joined", combiner=message.session, before=self._counters.combiner)
            self._is_new_combiner = True
            self._counters.combiner = message.session

    def _warn(self, event: str, text: str) -> None:
        if (left_out := self._limit.due(event)) is not None:
            log.warning(event, text=text, left_out=left_out)

    def _note_held(self) -> None:
        self._counters.held_bytes = self._held.nbytes + self._in_gathering
        self._counters.held_slices = self._held.n_slices


def _rows_of(meps: Sequence[MepRecord]) -> list[tuple[MepRecord, slice]]:
    """Each slice with its rows in the results."""
    ends = np.cumsum([0, *(mep.n_events for mep in meps)]).tolist()
    return [(mep, slice(first, last)) for mep, first, last in zip(meps, ends[:-1], ends[1:], strict=True)]
