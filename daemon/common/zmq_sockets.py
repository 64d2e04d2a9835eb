"""ZeroMQ sockets: how they are bound, kept alive, and read from the event loop without awaiting each message.

Awaiting every receive costs 11 µs; draining the socket when its file descriptor turns readable costs below 1 µs.
"""

import asyncio
import ctypes
import secrets
import time
from collections.abc import Callable, Mapping

import zmq

# A HELLO of all sources has 200 kB; nothing on this socket is larger.
MAX_CONTROL_BYTES = 1 << 20
# libzmq aborts the process ("!_io_error" in its stream engine) if it has to answer a PING, or sends one by its own
# heartbeat, on a connection that the peer has reset while reading was stopped; and a PUSH socket never closes such a
# connection. Reading is stopped when a queue is at its high-water mark. So a socket that others connect to has no
# receive high-water mark and no heartbeat: `security.connection_limiter` bounds what a peer can put into its queue, and
# TCP finds out that a machine is gone, here after 5 s without an answer.
BOUND: dict[zmq.SocketOption, int] = {
    zmq.RCVHWM: 0,
    zmq.TCP_KEEPALIVE: 1,
    zmq.TCP_KEEPALIVE_IDLE: 2,
    zmq.TCP_KEEPALIVE_INTVL: 1,
    zmq.TCP_KEEPALIVE_CNT: 3,
}
# The same for data that a peer does not acknowledge; without it the kernel tries for a quarter of an hour. Not for the
# outputs: it also ends the connection of a consumer that is stopped, and with the policy `wait` the node waits for it.
ACKNOWLEDGED_WITHIN_MS = 10_000


def largest_frame(max_frame_bytes: int) -> int:
    """Bytes of the largest frame that is received at all, for a configured limit.

    A frame above the limit is refused with a message. One that is larger than this, which no feeder of ours makes, is
    not even read: libzmq closes the connection.
    """
    return max_frame_bytes + max_frame_bytes // 4


# The loop gets its turn after this time: timers, control and HTTP have to be served while fragments arrive.
BUDGET_NS = 5_000_000


def make_routing_ids_unpredictable() -> None:
    """To be called before a ROUTER socket is made.

    libzmq numbers the peers without a routing id of their own, from a random start; and it aborts the process if a
    peer has already claimed the number that is next. The start comes from the C library's `rand`, which is not seeded:
    without this call it is the same in every process.
    """
    ctypes.CDLL(None).srand(secrets.randbits(32))


class BindError(OSError):
    """An endpoint cannot be bound; `endpoint` is the configured one."""

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
    """A bound socket that does not linger, and where it is bound: the true port for tcp://127.0.0.1:*.

    Args:
        options: what this socket has beyond `BOUND`.
        prepare: makes the socket secure before it is bound.

    Raises:
        BindError: the endpoint cannot be bound.
    """
    if kind == zmq.ROUTER:
        make_routing_ids_unpredictable()
    socket = context.socket(kind)
    try:
        socket.setsockopt(zmq.LINGER, 0)
        for option, value in {**BOUND, **options}.items():
            socket.setsockopt(option, value)
        prepare(socket)
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        socket.close()
        raise BindError(endpoint, error.errno) from error
    return socket, socket.getsockopt_string(zmq.LAST_ENDPOINT)


class SocketWatch:
    """Calls `changed` when something may have come on a socket, or when it may take messages again.

    A call on the socket may take note of such a change instead of the event loop: `changed` must read and send all
    that it can, and a sender must do so too afterwards.
    """

    def __init__(self, socket: zmq.Socket[bytes], changed: Callable[[], None]) -> None:
        self._socket = socket
        self._changed = changed
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to watch."""
        self._loop = loop
        loop.add_reader(self._socket.FD, self._readable)

    def stop(self) -> None:
        """Watch no more; before the socket is closed."""
        if self._loop is not None:
            self._loop.remove_reader(self._socket.FD)
            self._loop = None

    def again(self) -> None:
        """Call `changed` once more soon: it has left something unread."""
        if self._loop is not None:
            self._loop.call_soon(self._call_again)

    def _call_again(self) -> None:
        if self._loop is not None:
            self._changed()

    def _readable(self) -> None:
        # The descriptor stays readable until the socket has taken note, which a send does only now and then. It takes
        # all subscriptions that have come, however many; `poll` lets the other threads have the interpreter meanwhile,
        # `getsockopt` does not, and the limiter of the connections has to end a flood of them.
        self._socket.poll(0)
        self._changed()


class SocketDrain:
    """Has a socket read when something may have come, and again while something is left.

    ZMQ_FD is edge-triggered: it is readable only when the state changes. So the drain reads until the socket is empty
    or schedules itself again, and a *sender* on the same socket must call `kick` afterwards.

    Args:
        read_until: reads until the socket is empty (True), or until about this time of the monotonic clock in ns.
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
        """Begin to read; what is already there is read as well."""
        self._running = True
        self._loop.add_reader(self._socket.FD, self.read)
        self.kick()

    def stop(self) -> None:
        """Read no more."""
        if self._running:
            self._running = False
            self._loop.remove_reader(self._socket.FD)

    def kick(self) -> None:
        """Read again soon: a send may have consumed the edge."""
        if self._running and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._scheduled_drain)

    def kick_from_thread(self) -> None:
        """The same from another thread, until the loop ends."""
        if self._running:
            self._loop.call_soon_threadsafe(self.kick)

    def _scheduled_drain(self) -> None:
        self._scheduled = False
        self.read()

    def read(self) -> bool:
        """Read what is there; False if the budget has ended before the socket was empty."""
        if not self._running or self._read_until(time.monotonic_ns() + BUDGET_NS):
            return True
        self.kick()
        return False
