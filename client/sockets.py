"""The connections of a feeder: fragments over a socket or in shared memory, and control messages (DEALER)."""

import contextlib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import zmq
import zmq.asyncio
from zmq.backend.cython import _zmq
from zmq.utils.monitor import parse_monitor_message

from hltnode.client._native import FrameSender
from hltnode.client.keys import ClientKeys
from hltnode.client.memory_socket import MemorySocket, memory_path
from hltnode.client.shared_memory import SharedMemory
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.control_messages import ControlMessage, encode_message
from hltnode.protocol.transport.endpoints import is_ipv6
from hltnode.protocol.transport.feeder_messages import Hello
from hltnode.protocol.transport.messages import MAX_MESSAGE_SIZE

# Frames in the pipe to the node. The feeder keeps them anyway. It is woken when half of them have left, and a wake-up
# costs more than sending a frame.
DATA_HWM = 256
RECONNECT_MS = 100
RECONNECT_MAX_MS = 1000
LINGER_MS = 500
# Unreachable machine: the kernel ends an idle connection that does not answer for 5 s. No ZMTP heartbeats: libzmq
# aborts (assertion `!_io_error`) when the timer of a heartbeat meets a connection that was reset while its receive
# queue was full.
TCP_LIVENESS = {
    zmq.TCP_KEEPALIVE: 1,
    zmq.TCP_KEEPALIVE_IDLE: 2,
    zmq.TCP_KEEPALIVE_INTVL: 1,
    zmq.TCP_KEEPALIVE_CNT: 3,
}
# The kernel ends a connection whose data are not acknowledged for this time. A node reads fragments even when it has no
# slot for them; a node that pauses for some seconds keeps the connection.
CONTROL_MAXRT_MS = 4_000
DATA_MAXRT_MS = 15_000

# Handshakes that fail at every retry, and the reason.
HOPELESS = {
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "the node does not know this key: it is not in security.feeders",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "the node and this feeder do not agree on CURVE, or on the key of the node",
}
# A handshake that may succeed at the next try (the node was killed meanwhile), and what to check if it does not.
UNEXPLAINED = {
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "do both sides use CURVE, or none, and is the server key that of this node?",
}
_MONITORED = zmq.EVENT_DISCONNECTED | sum(UNEXPLAINED) | sum(HOPELESS)

_SENDER = FrameSender(_zmq.__file__)

AsyncSocket = zmq.asyncio.Socket

Trouble = Callable[[], Awaitable[zmq.Event]]
"""Waits until a connection is lost or refused."""


@dataclass(frozen=True, slots=True)
class FeederKeys:
    """CURVE settings of a feeder: its keys (None for plain connections), and whether the data are encrypted too."""

    keys: ClientKeys | None = None
    data: bool = False


PLAIN = FeederKeys()


class FeederConnection(Protocol):
    """The socket interface of a feeder; tests implement it."""

    @property
    def troubles(self) -> Sequence[Trouble]:
        """One of each connection."""

    @property
    def memory(self) -> SharedMemory | None:
        """The memory that must hold the frames, None for any."""

    async def send_frames(self, frames: list[Buffer], /) -> int:
        """Send the first of these frames, as many as there is room for; returns their number.

        0 after a wait for room: the frames to send may have changed meanwhile.
        """

    async def send_message(self, message: ControlMessage, /) -> None: ...
    async def receive_message(self) -> bytes: ...
    def reconnect(self) -> None: ...
    async def close(self, last: ControlMessage, /) -> None: ...


class _Connection:
    """A socket to one endpoint. It reconnects while the node is absent."""

    def __init__(self, socket: AsyncSocket, endpoint: str, max_retransmission_ms: int, keys: ClientKeys | None) -> None:
        self.socket = socket
        self._endpoint = endpoint
        socket.setsockopt(zmq.LINGER, LINGER_MS)
        socket.setsockopt(zmq.IPV6, is_ipv6(endpoint))
        socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_MAX_MS)
        set_tcp_liveness(socket, max_retransmission_ms)
        if keys is not None:
            keys.apply(socket)
        self._monitor: AsyncSocket = socket.get_monitor_socket(_MONITORED)
        self.trouble: Trouble = partial(next_trouble, self._monitor)
        socket.connect(endpoint)

    def reconnect(self) -> None:
        self.socket.disconnect(self._endpoint)
        self.socket.connect(self._endpoint)

    def close(self) -> None:
        self.socket.disable_monitor()
        self.socket.close()
        self._monitor.close(linger=0)


class _ControlConnection(_Connection):
    def __init__(self, context: zmq.asyncio.Context, endpoint: str, security: FeederKeys) -> None:
        socket: AsyncSocket = context.socket(zmq.DEALER)
        socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_SIZE)
        super().__init__(socket, endpoint, CONTROL_MAXRT_MS, security.keys)

    async def send_message(self, message: ControlMessage) -> None:
        await self.socket.send(encode_message(message))

    async def receive_message(self) -> bytes:
        return await self.socket.recv()

    async def say_last(self, last: ControlMessage) -> None:
        with contextlib.suppress(zmq.ZMQError):
            await self.socket.send(encode_message(last), zmq.NOBLOCK)


class FeederSockets:
    """Connects at once, and reconnects while the node is absent."""

    memory = None

    def __init__(self, context: zmq.asyncio.Context, data: str, control: str, security: FeederKeys = PLAIN) -> None:
        socket: AsyncSocket = context.socket(zmq.PUSH)
        socket.setsockopt(zmq.SNDHWM, DATA_HWM)
        # Frames wait in the feeder, not in a pipe to an absent node.
        socket.setsockopt(zmq.IMMEDIATE, 1)
        self._data = _Connection(socket, data, DATA_MAXRT_MS, security.keys if security.data else None)
        self._control = _ControlConnection(context, control, security)
        self.troubles = (self._data.trouble, self._control.trouble)
        self.send_message = self._control.send_message
        self.receive_message = self._control.receive_message

    async def send_frames(self, frames: list[Buffer]) -> int:
        """Send the first of these frames; returns their number, 0 after a wait for a node that does not read."""
        n_sent = _SENDER.send(self._data.socket.underlying, frames)
        if n_sent < 0:
            raise zmq.ZMQError(-n_sent)
        if n_sent == 0:
            await self._data.socket.poll(flags=zmq.POLLOUT)  # type: ignore[call-arg]  # pyzmq's types lack it
        return n_sent

    def reconnect(self) -> None:
        """Reconnect; unsent frames are dropped."""
        self._data.reconnect()
        self._control.reconnect()

    async def close(self, last: ControlMessage) -> None:
        """Send a last message if that needs no wait, and close."""
        await self._control.say_last(last)
        self._data.close()
        self._control.close()


class FeederMemory:
    """The same with the fragments in shared memory: the node reads them there, and only their places are sent.

    Args:
        path: path of the memory socket of the node.
    """

    def __init__(
        self,
        context: zmq.asyncio.Context,
        path: str,
        control: str,
        memory: SharedMemory,
        security: FeederKeys = PLAIN,
    ) -> None:
        self.memory: SharedMemory | None = memory
        self._data = MemorySocket(path, memory)
        self._control = _ControlConnection(context, control, security)
        self.troubles = (self._data.next_loss, self._control.trouble)
        self.send_frames = self._data.send_frames

    async def send_message(self, message: ControlMessage) -> None:
        """Send a control message; a hello names the owner of the memory."""
        if isinstance(message, Hello):
            self._data.follow(message)
        await self._control.send_message(message)

    async def receive_message(self) -> bytes:
        """The next control message of the node, not decoded."""
        raw = await self._control.receive_message()
        self._data.node_is_there()
        return raw

    def reconnect(self) -> None:
        """Reconnect; unsent frames are dropped."""
        self._data.disconnect()
        self._control.reconnect()

    async def close(self, last: ControlMessage) -> None:
        """Send a last message if that needs no wait, and close."""
        self._data.close()
        await self._control.say_last(last)
        self._control.close()


def connect_to_node(
    context: zmq.asyncio.Context, data: str, control: str, security: FeederKeys, memory: SharedMemory | None
) -> FeederConnection:
    """The connection to a data and a control endpoint. With the data endpoint shm:///PATH (the memory socket of a node
    on this machine) the frames are in `memory`, by default new memory."""
    path = memory_path(data)
    if path is None:
        return FeederSockets(context, data, control, security)
    return FeederMemory(context, path, control, memory or SharedMemory(), security)


MAX_PORT = 65535


def control_endpoint(data: str) -> str:
    """The default control endpoint of a data endpoint: the next port. Raises ValueError if the endpoint has no port."""
    match = re.fullmatch(r"(tcp://.+:)(\d+)", data)
    if match is None or int(match[2]) >= MAX_PORT:
        raise ValueError(f"{data}: give the control endpoint: there is no next port to derive it from")
    return f"{match[1]}{int(match[2]) + 1}"


def set_tcp_liveness(socket: AsyncSocket, max_retransmission_ms: int = CONTROL_MAXRT_MS) -> None:
    """Let the kernel end a connection to an unreachable machine."""
    socket.setsockopt(zmq.TCP_MAXRT, max_retransmission_ms)
    for option, value in TCP_LIVENESS.items():
        socket.setsockopt(option, value)


async def next_trouble(monitor: AsyncSocket) -> zmq.Event:
    """Wait until a connection is lost or refused."""
    return zmq.Event(parse_monitor_message(await monitor.recv_multipart())["event"])
