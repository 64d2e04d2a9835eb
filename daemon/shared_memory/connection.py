"""One connection to the memory socket: the segment and the messages of one feeder, without the event loop."""

import os
import socket
import struct
from collections import deque
from collections.abc import Callable

from hltnode.daemon.shared_memory.segment import Segment, SegmentRefusedError
from hltnode.protocol.errors import MessageError, RejectReason
from hltnode.protocol.transport.messages import as_remark
from hltnode.protocol.transport.shared_memory import (
    MAX_MEMORY_MESSAGE_SIZE,
    Attach,
    Attached,
    Detach,
    MemoryRefusal,
    Refused,
    decode_memory_message,
    decode_ranges,
    encode_memory_message,
)

# A message with several descriptors is an error; the kernel closes descriptors beyond this number.
_MOST_DESCRIPTORS = 4
_CREDENTIALS = struct.Struct("3i")
_ANCILLARY_BYTES = socket.CMSG_SPACE(_MOST_DESCRIPTORS * 4)


class EndedError(Exception):
    """The feeder closed the connection, or its process ended."""


class MemoryConnection:
    """The segment of one feeder, and its unread ranges.

    Args:
        peer: a connected non-blocking socket; the connection owns it.
        admit: checks the name, the session and the room for a segment. Raises SegmentRefusedError.
        most: largest size of a segment in bytes.
    """

    def __init__(self, peer: socket.socket, admit: Callable[[Attach], None], most: int) -> None:
        self.peer = peer
        self.pid, self.uid, _ = _CREDENTIALS.unpack(
            peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        self.owner: Attach | None = None
        """The feeder and session that own the segment; None before the segment arrives."""
        self.nbytes = 0
        self.range_messages = 0
        self.left_on_purpose = False
        self._admit = admit
        self._most = most
        self._segment: Segment | None = None
        self._ranges: deque[tuple[int, int]] = deque()
        self._range: memoryview | None = None
        self._at = 0

    @property
    def has_frames(self) -> bool:
        """True if a range is not read completely."""
        return self._range is not None or bool(self._ranges)

    def receive(self) -> bool:
        """Receive one message; False if none is there. Raises EndedError, SegmentRefusedError."""
        try:
            raw, ancillary, flags, _ = self.peer.recvmsg(
                MAX_MEMORY_MESSAGE_SIZE, _ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
            )
        except BlockingIOError:
            return False
        except OSError as error:
            raise EndedError from error
        files = _descriptors(ancillary)
        try:
            if not raw and not files:
                raise EndedError
            if flags & socket.MSG_TRUNC:
                raise SegmentRefusedError(MemoryRefusal.MALFORMED, "a message is too long")
            self._take(raw, files)
        finally:
            for file in files:
                os.close(file)
        return True

    def _take(self, raw: bytes, files: list[int]) -> None:
        try:
            ranges = decode_ranges(raw)
            message = decode_memory_message(raw) if ranges is None else None
        except MessageError as error:
            is_version = error.reason is RejectReason.BAD_VERSION
            reason = MemoryRefusal.BAD_VERSION if is_version else MemoryRefusal.MALFORMED
            raise SegmentRefusedError(reason, str(error)) from error
        if isinstance(message, Attach) and self._segment is None and len(files) == 1:
            self._admit(message)
            self._segment = Segment(files[0], message.nbytes, self._most)
            try:
                self.peer.send(encode_memory_message(Attached()))
            except OSError as error:
                raise EndedError from error
            self.owner, self.nbytes = message, message.nbytes
        elif self._segment is None or files or not (ranges or isinstance(message, Detach)):
            what = "ranges" if ranges else type(message).__name__
            raise SegmentRefusedError(
                MemoryRefusal.MALFORMED, f"unexpected message: {what} with {len(files)} descriptors"
            )
        elif ranges:
            self.range_messages += 1
            self._ranges.extend(ranges)
        else:
            self.left_on_purpose = True

    def read_range(self, take: Callable[[memoryview, int], int]) -> None:
        """Let `take` read frames of the next range from an offset on; it returns the offset of the next frame.

        Raises SegmentRefusedError.
        """
        if self._range is None:
            if not self._ranges or self._segment is None:
                return
            self._range = self._segment.range(*self._ranges.popleft())
            self._at = 0
        self._at = take(self._range, self._at)
        if self._at == len(self._range):
            self._range.release()
            self._range = None

    def refuse(self, refusal: SegmentRefusedError) -> None:
        """Send the reason of the refusal to the feeder, if it reads."""
        try:
            self.peer.send(encode_memory_message(Refused(refusal.reason, as_remark(str(refusal)))))
        except OSError:
            # The feeder is gone or does not read.
            return

    def close(self) -> None:
        """Unmap the segment and close the connection."""
        self._ranges.clear()
        if self._range is not None:
            self._range.release()
            self._range = None
        if self._segment is not None:
            self._segment.close()
            self._segment = None
        self.peer.close()


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    files: list[int] = []
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            n = len(data) // 4
            files += struct.unpack(f"{n}i", data[: 4 * n])
    return files
