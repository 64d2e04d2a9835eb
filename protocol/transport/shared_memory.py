"""The memory socket of a node: a feeder of the same machine hands over a memory segment, then sends places of frames.

It is a Unix socket that keeps message boundaries (SOCK_SEQPACKET). The feeder sends `Attach` together with a descriptor
of the segment (SCM_RIGHTS), and the node answers `Attached` or `Refused`. After that the feeder sends range messages,
in little-endian: u32 magic @0, u16 version @4, u16 number of ranges @6, then for each range u64 offset in the segment
and u64 size in bytes. A range holds frames; each starts at the next multiple of FRAME_ALIGNMENT bytes after the
previous one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import StrEnum, unique
from typing import TypeAlias, get_args

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import MessageError, RejectReason
from hltnode.protocol.transport.messages import U64, Message, MessageCodec, Name, Remark

MEMORY_VERSION = 1
RANGES_MAGIC = 0x524E4C48
FRAME_ALIGNMENT = 64
# Maximum number of ranges of a message, which then stays below 16 KiB.
MAX_RANGES_OF_A_MESSAGE = 1000
# The largest message of the memory socket.
MAX_MEMORY_MESSAGE_SIZE = 16 << 10
# Seals of a segment: it cannot shrink or grow, no other process can map it writable, it gets no holes, and seals cannot
# change. Values of linux/fcntl.h; Python's fcntl lacks the fourth.
SEAL_SEAL, SEAL_SHRINK, SEAL_GROW, SEAL_FUTURE_WRITE = 1, 2, 4, 16
SEALS = SEAL_SEAL | SEAL_SHRINK | SEAL_GROW | SEAL_FUTURE_WRITE

_HEAD = struct.Struct("<IHH")
_RANGE = struct.Struct("<QQ")


@unique
class MemoryRefusal(StrEnum):
    """Reasons why a node ends a connection to its memory socket.

    unknown_feeder: no feeder of this name and session sent a hello; too_many: shared_memory.max_segments exist;
    too_large: above shared_memory.max_segment_bytes; not_sealed: not a memory file, or seals are missing, so that it
    could shrink during reads; bad_size: its size differs from the announced one; not_allocated: it has holes; late: no
    segment was handed over in time; outside: a range outside the segment.
    """

    UNKNOWN_FEEDER = "unknown_feeder"
    TOO_MANY = "too_many"
    TOO_LARGE = "too_large"
    NOT_SEALED = "not_sealed"
    BAD_SIZE = "bad_size"
    NOT_ALLOCATED = "not_allocated"
    LATE = "late"
    OUTSIDE = "outside"
    MALFORMED = "malformed"
    BAD_VERSION = "bad_version"


class Attach(Message, frozen=True):
    """Feeder to node, with the descriptor of the segment: name and session as in the hello, and its size."""

    feeder: Name
    session: Name
    nbytes: U64


class Attached(Message, frozen=True):
    """Node to feeder: segment accepted, range messages may follow."""


class Refused(Message, frozen=True):
    """Node to feeder: the node ends this connection; `text` is for people."""

    reason: MemoryRefusal
    text: Remark


class Detach(Message, frozen=True):
    """Feeder to node: it closes the connection on purpose."""


MemoryMessage: TypeAlias = Attach | Attached | Refused | Detach

_CODEC: MessageCodec[MemoryMessage] = MessageCodec(
    *get_args(MemoryMessage),
    what="memory message",
    version=MEMORY_VERSION,
    max_size=MAX_MEMORY_MESSAGE_SIZE,
    max_containers=1,
)


def encode_memory_message(message: MemoryMessage) -> bytes:
    """The message as msgpack. Raises MessageError for a message that `decode_memory_message` would refuse."""
    return _CODEC.encode(message)


def decode_memory_message(raw: Buffer) -> MemoryMessage:
    """The message in `raw`. Raises MessageError for anything except a known message of this version."""
    return _CODEC.decode(raw)


def encode_ranges(ranges: Sequence[tuple[int, int]]) -> bytes:
    """The range message for 1 to MAX_RANGES_OF_A_MESSAGE ranges (offset, size)."""
    head = _HEAD.pack(RANGES_MAGIC, MEMORY_VERSION, len(ranges))
    return head + b"".join(_RANGE.pack(offset, size) for offset, size in ranges)


def decode_ranges(raw: Buffer) -> list[tuple[int, int]] | None:
    """The ranges (offset, size) of a range message; None for another message. Raises MessageError."""
    if len(raw) < _HEAD.size:
        return None
    magic, version, n = _HEAD.unpack_from(raw)
    if magic != RANGES_MAGIC:
        return None
    if version != MEMORY_VERSION:
        raise MessageError(
            RejectReason.BAD_VERSION, f"range message: version {MEMORY_VERSION} expected, {version} found"
        )
    expected = _HEAD.size + n * _RANGE.size
    if not 0 < n <= MAX_RANGES_OF_A_MESSAGE or len(raw) != expected:
        raise MessageError(
            RejectReason.MALFORMED, f"range message: {n} ranges in {expected} bytes expected, {len(raw)} bytes found"
        )
    return list(_RANGE.iter_unpack(memoryview(raw)[_HEAD.size :]))


def is_in(nbytes: int, offset: int, size: int) -> bool:
    """True if a range is not empty, aligned and inside a segment of `nbytes`."""
    return 0 < size <= nbytes and offset <= nbytes - size and offset % FRAME_ALIGNMENT == 0
