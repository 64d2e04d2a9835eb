"""A peer that implements ZMTP over a TCP socket, with the errors that an attack needs."""

import contextlib
import itertools
import socket
import struct
from types import TracebackType
from typing import Self

MORE, LARGE, COMMAND = 1, 2, 4
RESET_AT_CLOSE = struct.pack("ii", 1, 0)
SECONDS = 5.0


def greeting(mechanism: bytes = b"NULL", *, major: int = 3, minor: int = 1) -> bytes:
    """The 64 bytes at the start of a connection."""
    return b"\xff" + bytes(8) + b"\x7f" + bytes([major, minor]) + mechanism.ljust(20, b"\0") + bytes(32)


def frame(body: bytes, flags: int = 0) -> bytes:
    """A frame: flags, length, body."""
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return frame_header(len(body), flags) + body


def frame_header(length: int, flags: int = 0) -> bytes:
    """The header of a long frame, for any body."""
    return bytes([flags | LARGE]) + struct.pack(">Q", length)


def item(name: bytes, value: bytes) -> bytes:
    """A property of a handshake."""
    return bytes([len(name)]) + name + struct.pack(">I", len(value)) + value


def ready(socket_type: bytes, *items: bytes) -> bytes:
    """The READY command of the mechanism NULL."""
    return frame(b"\x05READY" + item(b"Socket-Type", socket_type) + b"".join(items), COMMAND)


def ping(ttl: int = 0, context: bytes = b"") -> bytes:
    """A heartbeat, with the timeout for the receiver in tenths of a second."""
    return frame(b"\x04PING" + struct.pack(">H", ttl) + context, COMMAND)


def subscribe(topic: bytes) -> bytes:
    """A subscription of ZMTP 3.0."""
    return frame(b"\x01" + topic)


_sources = (f"127.2.{number // 250}.{number % 250 + 1}" for number in itertools.count())
_source = "127.0.0.1"


def move_to_another_address() -> None:
    """Let the next peers come from an address that the node has not yet seen: it refuses the one of an attack."""
    global _source
    _source = next(_sources)


class RawPeer:
    """A connection to one port of a node, from the address of this machine or another one on the loopback.

    receive_bytes: size of the buffer of what is received but not read; None: what the system takes, up to megabytes.
    With a size the segments are small, too: the buffer of the sender grows by segments, of 64 KiB on the loopback.
    """

    def __init__(
        self, port: int, source: str | None = None, *, seconds: float = SECONDS, receive_bytes: int | None = None
    ) -> None:
        self.socket = socket.socket()
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        self.socket.settimeout(seconds)
        self.socket.bind((source or _source, 0))
        try:
            # The node may have closed the connection before the call returns.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.socket.connect(("127.0.0.1", port))
        except TimeoutError:
            # The node refuses the address.
            self.socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def shake_hands(self, socket_type: bytes, *items: bytes) -> Self:
        """Complete the handshake of the mechanism NULL. Raises OSError if the node ends the connection."""
        self.socket.sendall(greeting())
        self.receive(64)
        self.socket.sendall(ready(socket_type, *items))
        length = self.receive(2)[1]
        self.receive(length)
        return self

    def receive(self, n: int) -> bytes:
        """Receive exactly n bytes. Raises OSError if the connection ends earlier."""
        data = b""
        while len(data) < n:
            part = self.socket.recv(n - len(data))
            if not part:
                raise ConnectionResetError("the node has ended the connection")
            data += part
        return data

    def send(self, data: bytes) -> bool:
        """Send everything; False if the node has ended the connection, or does not read for `SECONDS`."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def send_what_fits(self, data: bytes) -> int:
        """Send as much as the socket accepts at once; returns the bytes, -1 if the node has ended the connection."""
        self.socket.setblocking(False)
        try:
            return self.socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return -1
        finally:
            self.socket.settimeout(SECONDS)

    def is_cut(self) -> bool:
        """Whether the node has ended the connection."""
        self.socket.setblocking(False)
        try:
            while self.socket.recv(65_536):
                pass
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            with contextlib.suppress(OSError):
                self.socket.settimeout(SECONDS)
        return True

    def reset(self) -> None:
        """End the connection with a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        self.socket.close()

    def close(self) -> None:
        """End the connection."""
        self.socket.close()
