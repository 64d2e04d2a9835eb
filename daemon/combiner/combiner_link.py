"""The socket of a node to its combiner: who the node is, its seeds, and the messages of the combiner.

Memory of its queues: `QUEUE` messages with seeds, of at most 1 MiB each, and `QUEUE` of the combiner, of at most 2 MiB.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import zmq

from hltnode.client.keys import ClientKeys
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import SeedFault
from hltnode.daemon.common.zmq_sockets import ACKNOWLEDGED_WITHIN_MS, BOUND
from hltnode.daemon.monitoring.counters import HeldCounters
from hltnode.protocol.errors import MessageError
from hltnode.protocol.transport.endpoints import is_ipv6
from hltnode.protocol.transport.seed_messages import (
    MAX_SEED_MESSAGE,
    ExternalWindow,
    Join,
    Joined,
    NotJoined,
    SliceWindows,
    decode_from_combiner,
    encode_to_combiner,
)

JOIN_NS = 1_000_000_000
"""Period of the message that says who this node is."""
QUEUE = 64
"""Messages that wait in each direction: with 1,000 of 1 MiB, the queue alone would take a GiB. More seeds are sent when
the queue has room."""
RECENT_SLICES, RECENT_BYTES = 256, 4 << 20
"""Seeds of slices that left, which another session of the combiner needs to decide on the slices behind them."""
TURN = 100
"""Messages of the combiner that are read before batches are checked."""
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("combiner_link")


class CombinerLink:
    """Connects with `open`, and belongs to one thread.

    Args:
        keys: CURVE keys for the combiner; None for a plain connection.
        join: makes the message that says who this node is.
    """

    def __init__(
        self,
        endpoint: str,
        keys: ClientKeys | None,
        counters: HeldCounters,
        join: Callable[[], Join],
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._endpoint = endpoint
        self._keys = keys
        self._counters = counters
        self._join = join
        self._clock_ns = clock_ns
        self._joined_ns: int | None = None
        self._heard_ns = clock_ns()
        self._is_refused = False
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._recent: deque[bytes] = deque()
        self._recent_bytes = 0
        self.socket: zmq.Socket[bytes] | None = None
        self._recent_left: deque[bytes] = deque()
        """Seeds of slices that left, for another session of the combiner."""
        self.is_new_combiner = False
        """Another session of the combiner answers: it knows no seeds. `send_recent` ends this."""

    @property
    def period_ns(self) -> int:
        """Time between two messages that say who this node is: short until the combiner has answered."""
        return JOIN_NS if self._counters.combiner and not self._is_refused else JOIN_NS // 20

    def open(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        """Connect the socket; it closes with the context."""
        socket = context.socket(zmq.DEALER)
        self.socket = socket
        options = {
            **BOUND,
            zmq.TCP_MAXRT: ACKNOWLEDGED_WITHIN_MS,
            zmq.LINGER: 0,
            # Without a connection, nothing is queued: it would be old when the combiner is there.
            zmq.IMMEDIATE: 1,
            zmq.SNDHWM: QUEUE,
            zmq.RCVHWM: QUEUE,
            zmq.MAXMSGSIZE: MAX_SEED_MESSAGE,
            zmq.IPV6: is_ipv6(self._endpoint),
            zmq.RECONNECT_IVL_MAX: 1000,
        }
        for option, value in options.items():
            socket.setsockopt(option, value)
        if self._keys is not None:
            self._keys.apply(socket)
        socket.connect(self._endpoint)

    def close(self) -> None:
        """Close the socket."""
        if self.socket is not None:
            self.socket.close(linger=0)

    def say_who(self, now_ns: int) -> None:
        """Send `join`, if it is time."""
        if self._joined_ns is None or now_ns - self._joined_ns >= self.period_ns:
            self._joined_ns, self._is_refused = now_ns, False
            self._send(encode_to_combiner(self._join()))

    def note_silence(self, now_ns: int) -> None:
        """Count the time since the last message of the combiner."""
        self._counters.silent_s = (now_ns - self._heard_ns) / 1e9

    def send(self, seeds: bytes) -> bool:
        """Send seeds; False, and counted, if the combiner has not answered yet or the queue is full."""
        # A combiner takes no seeds of a node that has not joined.
        if self._counters.combiner and self._send(seeds):
            return True
        self._counters.faults[SeedFault.UNSENT] += 1
        return False

    def send_all(self, messages: Iterable[bytes]) -> int:
        """Send seeds until the queue is full; returns the number of those that were sent."""
        sent = 0
        for message in messages:
            if not self.send(message):
                break
            sent += 1
        return sent

    def remember(self, seeds: bytes) -> None:
        """Remember the seeds of a slice that leaves."""
        self._recent.append(seeds)
        self._recent_bytes += len(seeds)
        while len(self._recent) > RECENT_SLICES or self._recent_bytes > RECENT_BYTES:
            self._recent_bytes -= len(self._recent.popleft())

    def send_recent(self) -> bool:
        """Send another session of the combiner the seeds of the slices that left last; False if some are left."""
        if self.is_new_combiner:
            self.is_new_combiner = False
            self._recent_left = self._recent.copy()
        for _ in range(self.send_all(self._recent_left)):
            self._recent_left.popleft()
        return not self._recent_left

    def read(self) -> Iterator[SliceWindows | ExternalWindow]:
        """The windows that have come; at most `TURN` messages are read."""
        assert self.socket is not None
        for _ in range(TURN):
            try:
                raw = self.socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._heard_ns = self._clock_ns()
            try:
                message = decode_from_combiner(raw)
            except MessageError as error:
                self._counters.faults[SeedFault.BAD_MESSAGE] += 1
                self._warn("combiner_message_refused", str(error))
                continue
            match message:
                case SliceWindows() | ExternalWindow():
                    yield message
                case Joined():
                    self._meet(message)
                case NotJoined():
                    self._counters.faults[SeedFault.REFUSED] += 1
                    self._warn("combiner_refuses", message.text)
                    # It may be another session, which does not know this node yet: join soon, but not at once. A
                    # combiner that refuses the node for good would be asked again and again.
                    self._is_refused = True

    def _send(self, message: bytes) -> bool:
        assert self.socket is not None
        try:
            self.socket.send(message, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def _meet(self, message: Joined) -> None:
        if message.session != self._counters.combiner:
            log.info("combiner_joined", combiner=message.session, before=self._counters.combiner)
            self.is_new_combiner = True
            self._counters.combiner = message.session

    def _warn(self, event: str, text: str) -> None:
        if (left_out := self._limit.due(event)) is not None:
            log.warning(event, text=text, left_out=left_out)
