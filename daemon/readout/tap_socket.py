"""The socket of a tap: it publishes input of the node to readers, and never delays the node.

Messages wait for a slow reader up to a number of bytes. The taps above drop MEPs beyond it, and count them. Large parts
are sent without a copy.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

import zmq

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.zmq_sockets import SocketWatch, bind_socket
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.daemon.monitoring.counters import TapCounters
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.tap_message import BEGIN, TapHeader, encode_tap_header

# Messages queued by ZeroMQ for a reader. With the largest frames, 16 MiB, they are as large as the default buffer.
HIGH_WATER_MARK = 4
# A subscription is a short topic.
MAX_CONSUMER_BYTES = 512
SUBSCRIPTION_BUDGET = 256
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("input_tap")


class TapOfMeps(Protocol):
    """A tap that is told of closed MEPs."""

    def mep_closed(self, run: int, record: MepRecord, /) -> None: ...


class TapSocket:
    """An XPUB socket with a bounded queue. All calls come from the thread of the event loop.

    Raises:
        BindError: the endpoint cannot be bound.

    Args:
        buffer_bytes: most bytes of waiting messages.
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
        self._waiting: deque[tuple[bytes, tuple[Buffer, ...]]] = deque()
        self._waiting_bytes = 0
        self._sequence = 0
        self._left_by_all()
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to follow readers: their subscriptions, and their readiness for waiting messages."""
        self._watch.start(loop)
        self.changed()

    @property
    def has_reader(self) -> bool:
        """True while a reader has subscribed."""
        return self._counters.subscribers > 0

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
                # It tells the new reader that this is a tap; the others get it, too.
                self._waiting.append((encode_tap_header(TapHeader(BEGIN, self._sequence, 0, 0, 0)), ()))
            if change and (left_out := self._limit.due(("recorder", change))) is not None:
                log.info("recorders", n=self._counters.subscribers, left_out=left_out)
        else:
            self._watch.again()
        if not self._counters.subscribers:
            self._waiting.clear()
            self._waiting_bytes = 0
            self._left_by_all()
        self._pump()

    def close(self, linger_ms: int) -> None:
        """Close the socket. Queued messages may be sent for up to `linger_ms` while the context ends."""
        self._watch.stop()
        self._pump()
        self._socket.close(linger=linger_ms)

    def _left_by_all(self) -> None:
        """Called at the start, and while no reader is there."""

    def _has_room(self, nbytes: int) -> bool:
        return self._waiting_bytes + nbytes <= self._buffer_bytes

    def _put(self, header: TapHeader, *parts: Buffer) -> None:
        self._waiting_bytes += sum(map(len, parts))
        self._waiting.append((encode_tap_header(header), parts))

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence - 1

    def _dropped_mep(self, mep: int) -> None:
        self._counters.dropped += 1
        if (left_out := self._limit.due("dropped")) is not None:
            log.warning("tap_drops_meps", mep=mep, waiting_bytes=self._waiting_bytes, left_out=left_out)

    def _pump(self) -> None:
        waiting = self._waiting
        while waiting:
            header, parts = waiting[0]
            try:
                self._socket.send(header, zmq.NOBLOCK | (zmq.SNDMORE if parts else 0))
            except zmq.Again:
                return
            for i, part in enumerate(parts, 1):
                self._socket.send(part, zmq.SNDMORE if i < len(parts) else 0, copy=False)
                self._waiting_bytes -= len(part)
            waiting.popleft()
