"""The connection of a feeder to the memory socket of a node of the same machine."""

import asyncio
import contextlib
import socket
from collections import deque

import zmq

from hltnode.client.shared_memory import SharedMemory
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import MessageError
from hltnode.protocol.transport.feeder_messages import Hello
from hltnode.protocol.transport.shared_memory import (
    MAX_MEMORY_MESSAGE_SIZE,
    MAX_RANGES_OF_A_MESSAGE,
    Attach,
    Attached,
    Detach,
    MemoryRefusal,
    Refused,
    decode_memory_message,
    encode_memory_message,
    encode_ranges,
)

SCHEME = "shm://"
RETRY_SECONDS = 0.2
# A node that welcomed this feeder, but offers no memory socket after this time, has none. The wait for an absent node
# has no limit.
PATIENCE_SECONDS = 30.0
# The node answers each hello; hellos are sent every second.
HEARD_SECONDS = 3.0
# Fault injection copies damaged frames into the memory; a copy stays until this number of others follow.
KEPT_COPIES = 64
# Temporary refusals: the hello is still on its way, or the node has not closed an earlier segment of this process.
_PASSING = frozenset({MemoryRefusal.UNKNOWN_FEEDER, MemoryRefusal.TOO_MANY, MemoryRefusal.LATE})


class MemoryRefusedError(RuntimeError):
    """The node refuses the memory of this feeder, or has no memory socket; the message gives the reason."""


class MemorySocket:
    """Hands over the memory with the first frame, then sends the places of frames.

    Adjacent frames are one range. After a lost connection the next frame opens a new one.

    Args:
        path: path of the memory socket of the node.
    """

    def __init__(self, path: str, memory: SharedMemory) -> None:
        self._path = path
        self._memory = memory
        self._hello: Hello | None = None
        self._socket: socket.socket | None = None
        self._is_attached = False
        self._unsent: deque[bytes] = deque()
        self._copies: deque[object] = deque(maxlen=KEPT_COPIES)
        self._change = asyncio.Event()
        self._lost = asyncio.Event()
        self._refusal: Refused | None = None
        self._heard_at = -PATIENCE_SECONDS

    def node_is_there(self) -> None:
        """Record that the node sent a control message."""
        self._heard_at = asyncio.get_running_loop().time()

    def follow(self, hello: Hello) -> None:
        """Record name and session of the last hello, under which the memory is handed over."""
        self._hello = hello

    async def send_frames(self, frames: list[Buffer]) -> int:
        """Send the places of the first of these frames; returns their number, 0 after a wait for a node that does not
        read or is absent. Raises MemoryRefusedError."""
        if not self._is_attached:
            await self._attach()
            return 0
        if self._unsent:
            await self._wait()
            return 0
        ranges, n_sent = self._memory.ranges_of(frames, MAX_RANGES_OF_A_MESSAGE)
        if not ranges:
            # Fault injection makes frames outside the memory.
            ranges, n_sent = [(await self._copy(frames[0]), len(frames[0]))], 1
        self._send_ranges(ranges)
        return n_sent

    async def next_loss(self) -> zmq.Event:
        """Wait until the node ends the connection."""
        await self._lost.wait()
        self._lost.clear()
        return zmq.EVENT_DISCONNECTED

    def disconnect(self) -> None:
        """Drop unsent places; the next frame opens a new connection."""
        if self._socket is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._socket)
            loop.remove_writer(self._socket)
            self._socket.close()
            self._socket = None
        self._is_attached = False
        self._unsent.clear()
        self._change.set()

    def close(self) -> None:
        """Announce the end, and close."""
        if self._socket is not None and self._is_attached:
            with contextlib.suppress(OSError):
                self._socket.send(encode_memory_message(Detach()))
        self.disconnect()

    async def _copy(self, frame: Buffer) -> int:
        """Copy a frame from outside into the memory."""
        while (place := self._memory.try_allocate(len(frame))) is None:
            await asyncio.sleep(RETRY_SECONDS)
        place.data[:] = frame
        self._copies.append(place)
        offset = self._memory.offset_of(place.data)
        assert offset is not None
        return offset

    # Connecting

    async def _attach(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_SECONDS
        while True:
            why = await self._try_to_attach()
            if self._is_attached:
                return
            self.disconnect()
            refusal = self._refusal
            is_overdue = loop.time() >= end and loop.time() - self._heard_at < HEARD_SECONDS
            if is_overdue or (refusal is not None and refusal.reason not in _PASSING):
                raise MemoryRefusedError(f"{SCHEME}{self._path}: {why}")
            await asyncio.sleep(RETRY_SECONDS)

    async def _try_to_attach(self) -> str:
        """Try to connect once; returns the reason of a failure, else None."""
        self._refusal = None
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        self._socket = connection
        try:
            connection.connect(self._path)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            return f"{error.strerror}: check that the node runs and that its shared_memory.socket is this path"
        except OSError as error:
            return str(error.strerror)
        hello = self._hello
        if hello is None:
            return "no hello was sent"
        attach = encode_memory_message(Attach(hello.feeder, hello.session, self._memory.nbytes))
        try:
            socket.send_fds(connection, [attach], [self._memory.fileno()])
        except OSError as error:
            return str(error.strerror)
        self._change.clear()
        asyncio.get_running_loop().add_reader(connection, self._read, connection)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self._is_attached and self._socket is connection:
                    await self._wait()
        if self._refusal is not None:
            return f"the node refuses the memory: {self._refusal.text}"
        return "the node does not answer"

    def _read(self, connection: socket.socket) -> None:
        try:
            raw = connection.recv(MAX_MEMORY_MESSAGE_SIZE)
            message = decode_memory_message(raw) if raw else None
        except BlockingIOError:
            return
        except (OSError, MessageError):
            message = None
        if isinstance(message, Attached):
            self._is_attached = True
            self._change.set()
            return
        if isinstance(message, Refused):
            self._refusal = message
        was_attached = self._is_attached
        self.disconnect()
        if was_attached:
            self._lost.set()

    async def _wait(self) -> None:
        self._change.clear()
        await self._change.wait()

    # Sending

    def _send_ranges(self, ranges: list[tuple[int, int]]) -> None:
        if self._socket is None:
            return
        self._unsent.append(encode_ranges(ranges))
        self._send()
        if self._unsent:
            asyncio.get_running_loop().add_writer(self._socket, self._send)

    def _send(self) -> None:
        """Send the queued places; the reader detects the end of the connection."""
        assert self._socket is not None
        try:
            while self._unsent:
                self._socket.send(self._unsent[0])
                self._unsent.popleft()
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()
        asyncio.get_running_loop().remove_writer(self._socket)
        self._change.set()


def memory_path(endpoint: str) -> str | None:
    """The path of a data endpoint shm:///PATH (a memory socket), None for other endpoints."""
    return endpoint.removeprefix(SCHEME) if endpoint.startswith(SCHEME) else None
