"""ZeroMQ sockets: how they are bound, kept alive, and read from the event loop without awaiting each message.

Awaiting every receive costs 11 µs; draining the socket when its file descriptor turns readable costs below 1 µs.
"""

import asyncio
import ctypes
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

import zmq

from hltnode.protocol.transport.endpoints import is_ipv6

# A HELLO of all sources has 200 kB; nothing on this socket is larger.
MAX_CONTROL_BYTES = 1 << 20
# libzmq stops reading when a queue is at its high-water mark. If the peer resets the connection meanwhile, the next
# PING, answered or sent as a heartbeat, aborts the process ("!_io_error" in the stream engine); a PUSH socket never
# closes such a connection. So a bound socket has no receive high-water mark and no heartbeat:
# `security.connection_limiter` bounds the queue of each peer, and TCP detects a dead machine, here after 5 s without an
# answer.
BOUND: dict[zmq.SocketOption, int] = {
    zmq.RCVHWM: 0,
    zmq.TCP_KEEPALIVE: 1,
    zmq.TCP_KEEPALIVE_IDLE: 2,
    zmq.TCP_KEEPALIVE_INTVL: 1,
    zmq.TCP_KEEPALIVE_CNT: 3,
}
# The same for data that a peer does not acknowledge; by default the kernel tries for a quarter of an hour. Outputs do
# not use it: it also ends the connection of a stopped consumer, for which the policy `wait` has to wait.
ACKNOWLEDGED_WITHIN_MS = 10_000


def largest_frame(max_frame_bytes: int) -> int:
    """Bytes of the largest frame that libzmq receives, for a configured limit.

    The node refuses a frame above the configured limit with a message. At a frame above the returned size, libzmq
    closes the connection; no correct feeder sends one.
    """
    return max_frame_bytes + max_frame_bytes // 4


# A read returns to the loop after this time: timers, control and HTTP need service while fragments arrive.
BUDGET_NS = 5_000_000


def make_routing_ids_unpredictable() -> None:
    """Seed `rand` of the C library; call this before creating a ROUTER socket.

    libzmq numbers the peers without a routing id, from a random start. It aborts the process if a peer has already
    claimed the next number. The start comes from `rand`, which libzmq does not seed: without this call, it is the same
    in every process.
    """
    ctypes.CDLL(None).srand(secrets.randbits(32))


class BindError(OSError):
    """An endpoint cannot be bound; `endpoint` is the configured endpoint."""

    def __init__(self, endpoint: str, number: int | None) -> None:
        super().__init__(number, zmq.strerror(number or 0))
        self.endpoint = endpoint

    def __str__(self) -> str:
        return f"{self.endpoint} cannot be bound: {self.strerror}"


def bind_socket(
    context: zmq.Context[zmq.Socket[bytes]],
    kind: int,
    endpoint: str,
    options: Mapping[zmq.SocketOption, int],
    prepare: Callable[[zmq.Socket[bytes]], None],
) -> tuple[zmq.Socket[bytes], str]:
    """A bound socket without linger time, and its endpoint with the actual port, also for tcp://127.0.0.1:*.

    Args:
        options: socket options in addition to `BOUND`.
        prepare: sets up the security of the socket before it is bound.

    Raises:
        BindError: the endpoint cannot be bound.
    """
    if kind == zmq.ROUTER:
        make_routing_ids_unpredictable()
    socket = context.socket(kind)
    try:
        socket.setsockopt(zmq.LINGER, 0)
        for option, value in {**BOUND, zmq.IPV6: is_ipv6(endpoint), **options}.items():
            socket.setsockopt(option, value)
        prepare(socket)
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        socket.close()
        raise BindError(endpoint, error.errno) from error
    return socket, socket.getsockopt_string(zmq.LAST_ENDPOINT)


class SocketWatch:
    """Calls `changed` when a socket may have received something or may accept messages again.

    Any call on the socket may consume such a change before the event loop sees it. So `changed` has to read and send
    all that it can, and every sender has to do the same after a send.

    Args:
        lock: held for each use of the socket, if other threads use it too.
    """

    def __init__(
        self, socket: zmq.Socket[bytes], changed: Callable[[], None], lock: AbstractContextManager[object] | None = None
    ) -> None:
        self._lock = lock or nullcontext()
        self._socket = socket
        self._changed = changed
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start watching."""
        self._loop = loop
        loop.add_reader(self._socket.FD, self._readable)

    def stop(self) -> None:
        """Stop watching; call this before the socket is closed."""
        if self._loop is not None:
            self._loop.remove_reader(self._socket.FD)
            self._loop = None

    def again(self) -> None:
        """Call `changed` again soon, because it left something unread."""
        if self._loop is not None:
            self._loop.call_soon(self._call_again)

    def _call_again(self) -> None:
        if self._loop is not None:
            self._changed()

    def _readable(self) -> None:
        # The descriptor stays readable until the socket processes its commands, which a send does only now and then.
        # This call processes all pending subscriptions. Unlike `getsockopt`, `poll` releases the GIL meanwhile, so that
        # the connection limiter can end a flood of subscriptions.
        with self._lock:
            self._socket.poll(0)
        self._changed()


class SocketDrain:
    """Calls `read_until` when a socket may have received something, and again while data is left.

    ZMQ_FD is edge-triggered: it turns readable only when the state changes. So the drain reads until the socket is
    empty or schedules itself again. Code that sends on the same socket must call `kick` afterwards.

    Args:
        read_until: reads until the socket is empty (returns True), or until about this time (monotonic, ns).
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, socket: zmq.Socket[bytes], read_until: Callable[[int], bool]
    ) -> None:
        self._loop = loop
        self._socket = socket
        self._read_until = read_until
        self._scheduled = False
        self._running = False

    def start(self) -> None:
        """Start reading, including messages that have already arrived."""
        self._running = True
        self._loop.add_reader(self._socket.FD, self.read)
        self.kick()

    def stop(self) -> None:
        """Stop reading."""
        if self._running:
            self._running = False
            self._loop.remove_reader(self._socket.FD)

    def kick(self) -> None:
        """Read again soon, because a send may have consumed the edge."""
        if self._running and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._scheduled_drain)

    def kick_from_thread(self) -> None:
        """`kick` from another thread; no effect after the end of the loop."""
        if self._running:
            self._loop.call_soon_threadsafe(self.kick)

    def _scheduled_drain(self) -> None:
        self._scheduled = False
        self.read()

    def read(self) -> bool:
        """Read the available messages; False if the time budget ended before the socket was empty."""
        if not self._running or self._read_until(time.monotonic_ns() + BUDGET_NS):
            return True
        self.kick()
        return False
