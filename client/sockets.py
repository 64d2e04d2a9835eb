"""The two connections of a feeder: fragments out (PUSH) and messages both ways (DEALER), and their monitors."""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import zmq
import zmq.asyncio
from zmq.utils.monitor import parse_monitor_message

from hltnode.client.keys import ClientKeys
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.control_messages import ControlMessage, encode_message
from hltnode.protocol.transport.messages import MAX_MESSAGE_SIZE

# Frames in the pipe to the node. The feeder keeps them anyway; a few are enough to keep the connection busy, of small
# ones some more.
DATA_HWM = 64
RECONNECT_MS = 100
RECONNECT_MAX_MS = 1000
# pyzmq's own threshold: below it copying a frame is cheaper than keeping track of its memory.
COPY_THRESHOLD = 65536
LINGER_MS = 500
# A machine that is gone or cut off: the kernel ends a connection that carries no data and does not answer for 5 s.
# No ZMTP heartbeats: libzmq aborts (assertion `!_io_error`) when the timer of a heartbeat meets a connection that was
# reset while its receive queue was full.
TCP_LIVENESS = {
    zmq.TCP_KEEPALIVE: 1,
    zmq.TCP_KEEPALIVE_IDLE: 2,
    zmq.TCP_KEEPALIVE_INTVL: 1,
    zmq.TCP_KEEPALIVE_CNT: 3,
}
# The same for a connection whose data are not taken. A node reads fragments also when it has no place for them; but the
# one that pauses for some seconds keeps what is on its way.
CONTROL_MAXRT_MS = 4_000
DATA_MAXRT_MS = 15_000

# Handshakes that will fail again with every repetition, and why.
HOPELESS = {
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "the node does not know this key: it is not in security.feeders",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "the node and this feeder do not agree on CURVE, or on the key of the node",
}
_MONITORED = zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | sum(HOPELESS)

AsyncSocket = zmq.asyncio.Socket


@dataclass(frozen=True, slots=True)
class FeederKeys:
    """CURVE of a feeder: its keys, None for plain connections, and whether the data are encrypted too."""

    keys: ClientKeys | None = None
    data: bool = False


PLAIN = FeederKeys()


class FeederConnection(Protocol):
    """What a feeder needs of its sockets; tests bring their own."""

    @property
    def monitors(self) -> Sequence[AsyncSocket]: ...
    async def send_frame(self, frame: Buffer, /) -> None: ...
    async def send_message(self, message: ControlMessage, /) -> None: ...
    async def receive_message(self) -> bytes: ...
    def reconnect(self) -> None: ...
    async def close(self, last: ControlMessage, /) -> None: ...


class FeederSockets:
    """Connects at once, and reconnects for as long as the node is not there."""

    def __init__(self, context: zmq.asyncio.Context, data: str, control: str, security: FeederKeys = PLAIN) -> None:
        self._data: AsyncSocket = context.socket(zmq.PUSH)
        self._data.setsockopt(zmq.SNDHWM, DATA_HWM)
        # Frames wait where the feeder keeps them, and not in a pipe to a node that is not there.
        self._data.setsockopt(zmq.IMMEDIATE, 1)
        self._data_now = zmq.Socket(shadow=self._data.underlying)
        self._control: AsyncSocket = context.socket(zmq.DEALER)
        self._control.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_SIZE)
        for socket in (self._data, self._control):
            socket.setsockopt(zmq.LINGER, LINGER_MS)
            socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
            socket.setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_MAX_MS)
        set_tcp_liveness(self._data, DATA_MAXRT_MS)
        set_tcp_liveness(self._control, CONTROL_MAXRT_MS)
        if security.keys is not None:
            security.keys.apply(self._control)
            if security.data:
                security.keys.apply(self._data)
        self.monitors: tuple[AsyncSocket, ...] = tuple(
            socket.get_monitor_socket(_MONITORED) for socket in (self._data, self._control)
        )
        """One of each connection, for `next_trouble`."""
        self._endpoints = ((self._data, data), (self._control, control))
        for socket, endpoint in self._endpoints:
            socket.connect(endpoint)

    async def send_frame(self, frame: Buffer) -> None:
        """Send a fragment; waits while the node does not read."""
        copy = len(frame) < COPY_THRESHOLD
        try:
            # Without a future for each frame as long as there is room.
            self._data_now.send(frame, zmq.NOBLOCK, copy=copy)
        except zmq.Again:
            await self._data.send(frame, copy=copy)

    async def send_message(self, message: ControlMessage) -> None:
        """Send a control message."""
        await self._control.send(encode_message(message))

    async def receive_message(self) -> bytes:
        """The next control message of the node, as it came."""
        return await self._control.recv()

    def reconnect(self) -> None:
        """Connect anew; what has not left yet is dropped."""
        for socket, endpoint in self._endpoints:
            socket.disconnect(endpoint)
            socket.connect(endpoint)

    async def close(self, last: ControlMessage) -> None:
        """Send a last message if it goes at once, and close."""
        with contextlib.suppress(zmq.ZMQError):
            await self._control.send(encode_message(last), zmq.NOBLOCK)
        for socket in (self._data, self._control):
            socket.disable_monitor()
            socket.close()
        for monitor in self.monitors:
            monitor.close(linger=0)


def control_endpoint(data: str) -> str:
    """The default control endpoint of a data endpoint: the next port. Raises ValueError where there is no port."""
    match = re.fullmatch(r"(tcp://.+:)(\d+)", data)
    if match is None:
        raise ValueError(f"{data}: the control endpoint is needed, because the next port cannot be derived")
    return f"{match[1]}{int(match[2]) + 1}"


def set_tcp_liveness(socket: AsyncSocket, max_retransmission_ms: int = CONTROL_MAXRT_MS) -> None:
    """Let the kernel end a connection whose machine is gone."""
    socket.setsockopt(zmq.TCP_MAXRT, max_retransmission_ms)
    for option, value in TCP_LIVENESS.items():
        socket.setsockopt(option, value)


async def next_trouble(monitor: AsyncSocket) -> zmq.Event:
    """Wait for a connection to be lost or refused."""
    return zmq.Event(parse_monitor_message(await monitor.recv_multipart())["event"])
