"""The tap: publishes the input for a recorder, and never delays the node.

Fragments wait for a slow recorder up to a number of bytes. Above it, whole MEPs are dropped and counted. The tap sends
the frames that ZeroMQ has received, without a copy.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import zmq

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.zmq_sockets import SocketWatch, bind_socket
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.daemon.monitoring.counters import TapCounters
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.tap_message import BEGIN, CLOSED, FRAGMENT, TapHeader, encode_tap_header

# Messages queued by ZeroMQ for a recorder. With the largest frames, 16 MiB, they are as large as the default buffer.
HIGH_WATER_MARK = 4
# A subscription is a short topic.
MAX_CONSUMER_BYTES = 512
SUBSCRIPTION_BUDGET = 256
# Most dropped MEPs that are remembered until they are closed; more than a node has open.
MAX_DROPPED = 65_536
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("input_tap")


class InputTap:
    """The XPUB socket of the tap. All calls come from the thread of the event loop.

    Raises:
        BindError: the endpoint cannot be bound.

    Args:
        buffer_bytes: most bytes of waiting frames.
        prepare: applies keys and limits before the socket is bound.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoint: str,
        counters: TapCounters,
        *,
        buffer_bytes: int,
        prepare: Callable[[zmq.Socket[bytes]], None],
        clock_ns: Callable[[], int],
    ) -> None:
        options = {
            zmq.XPUB_NODROP: 1,
            zmq.XPUB_VERBOSER: 1,
            zmq.SNDHWM: HIGH_WATER_MARK,
            zmq.MAXMSGSIZE: MAX_CONSUMER_BYTES,
        }
        self._socket, self.endpoint = bind_socket(context, zmq.XPUB, endpoint, options, prepare)
        self._watch = SocketWatch(self._socket, self.changed)
        self._counters = counters
        self._buffer_bytes = buffer_bytes
        self._waiting: deque[tuple[bytes, Buffer | None]] = deque()
        self._waiting_bytes = 0
        self._dropped: dict[tuple[int, int], None] = {}
        self._sequence = 0
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to follow recorders: their subscriptions, and their readiness for waiting frames."""
        self._watch.start(loop)
        self.changed()

    @property
    def has_recorder(self) -> bool:
        """True while a recorder has subscribed."""
        return self._counters.subscribers > 0

    def fragment_taken(self, frame: Buffer, run: int, mep: int) -> None:
        """Publish the frame of an accepted fragment."""
        if not self.has_recorder:
            return
        sequence = self._next()
        if (run, mep) in self._dropped:
            return
        if self._waiting_bytes + len(frame) > self._buffer_bytes:
            self._drop(run, mep)
            return
        self._waiting_bytes += len(frame)
        self._waiting.append((encode_tap_header(TapHeader(FRAGMENT, sequence, run, mep, 0)), frame))
        self._pump()

    def mep_closed(self, run: int, record: MepRecord) -> None:
        """Publish the end of a MEP."""
        if not self._counters.subscribers:
            return
        sequence = self._next()
        if (run, record.mep) in self._dropped:
            del self._dropped[run, record.mep]
            return
        header = TapHeader(CLOSED, sequence, run, record.mep, record.n_fragments)
        self._waiting.append((encode_tap_header(header), None))
        self._counters.meps += 1
        # A send may have processed the subscription of a recorder that came or left.
        self.changed()

    def changed(self) -> None:
        """Read subscriptions and send waiting messages. Call it when the socket may have news."""
        for _ in range(SUBSCRIPTION_BUDGET):
            try:
                message = self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                break
            change = {b"\x01": 1, b"\x00": -1}.get(message[:1], 0)
            self._counters.subscribers += change
            if change > 0:
                # It tells the new recorder that this is a tap; the others get it, too.
                self._waiting.append((encode_tap_header(TapHeader(BEGIN, self._sequence, 0, 0, 0)), None))
            if change and (left_out := self._limit.due(("recorder", change))) is not None:
                log.info("recorders", n=self._counters.subscribers, left_out=left_out)
        else:
            self._watch.again()
        if not self._counters.subscribers:
            self._waiting.clear()
            self._waiting_bytes = 0
            self._dropped.clear()
        self._pump()

    def close(self, linger_ms: int) -> None:
        """Close the socket. Queued messages may be sent for up to `linger_ms` while the context ends."""
        self._watch.stop()
        self._pump()
        self._socket.close(linger=linger_ms)

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence - 1

    def _drop(self, run: int, mep: int) -> None:
        self._counters.dropped += 1
        self._dropped[run, mep] = None
        if len(self._dropped) > MAX_DROPPED:
            del self._dropped[next(iter(self._dropped))]
        if (left_out := self._limit.due("dropped")) is not None:
            log.warning("tap_drops_meps", mep=mep, waiting_bytes=self._waiting_bytes, left_out=left_out)

    def _pump(self) -> None:
        waiting = self._waiting
        while waiting:
            header, frame = waiting[0]
            try:
                if frame is None:
                    self._socket.send(header, zmq.NOBLOCK)
                else:
                    self._socket.send(header, zmq.NOBLOCK | zmq.SNDMORE)
                    self._socket.send(frame, copy=False)
                    self._waiting_bytes -= len(frame)
            except zmq.Again:
                return
            waiting.popleft()
