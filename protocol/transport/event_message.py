"""Kept events on a socket: one message per event, with a short header for subscriptions and the MDF record."""

import struct

import msgspec

from hltnode.protocol.buffers import Buffer, byte_view
from hltnode.protocol.errors import MessageError, RejectReason

ACCEPTED = b"A"
ERROR = b"E"

# Stream (one letter, the topic of a subscription), run u32, number of the message on its output u64.
_HEADER = struct.Struct("<cIQ")


class EventHeader(msgspec.Struct, frozen=True):
    """First part of an event message; `stream` is ACCEPTED or ERROR."""

    stream: bytes
    run: int
    sequence: int


def encode_event_header(header: EventHeader) -> bytes:
    """13 bytes, little-endian: stream, run u32, sequence u64.  Raises MessageError for a field that does not fit."""
    try:
        return _HEADER.pack(header.stream, header.run, header.sequence)
    except struct.error as error:
        raise MessageError(RejectReason.MALFORMED, f"event header: {header!r:.200}: {error}") from error


def decode_event_header(buffer: Buffer) -> EventHeader:
    """The header of an event message.  Raises MessageError."""
    view = byte_view(buffer)
    if len(view) != _HEADER.size:
        raise MessageError(RejectReason.BAD_SIZE, f"event header: {_HEADER.size} bytes expected, {len(view)} received")
    stream, run, sequence = _HEADER.unpack(view)
    if stream not in (ACCEPTED, ERROR):
        raise MessageError(RejectReason.MALFORMED, f"event header: stream A or E expected, {stream!r} found")
    return EventHeader(stream, run, sequence)
