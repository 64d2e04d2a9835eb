"""Messages of the tap of a node: fragments, closed MEPs, new recorders (docs/formats/tap-message.md)."""

import struct

import msgspec

from hltnode.protocol.buffers import Buffer, byte_view
from hltnode.protocol.errors import MessageError, RejectReason

FRAGMENT = b"F"
CLOSED = b"C"
BEGIN = b"B"

# Kind, message number u64, run u32, MEP id u64, number of fragments u16 (of a closed MEP).
_HEADER = struct.Struct("<cQIQH")


class TapHeader(msgspec.Struct, frozen=True):
    """First part of a tap message; `kind` is FRAGMENT (the frame is the second part), CLOSED or BEGIN."""

    kind: bytes
    sequence: int
    run: int
    mep: int
    n_fragments: int


def encode_tap_header(header: TapHeader) -> bytes:
    """23 bytes, little-endian. Raises MessageError for a field that does not fit."""
    try:
        return _HEADER.pack(header.kind, header.sequence, header.run, header.mep, header.n_fragments)
    except struct.error as error:
        raise MessageError(RejectReason.MALFORMED, f"tap header: {header!r:.200}: {error}") from error


def decode_tap_header(buffer: Buffer) -> TapHeader:
    """The header of a tap message. Raises MessageError."""
    view = byte_view(buffer)
    if len(view) != _HEADER.size:
        raise MessageError(RejectReason.BAD_SIZE, f"tap header: {_HEADER.size} bytes expected, {len(view)} received")
    kind, sequence, run, mep, n_fragments = _HEADER.unpack(view)
    if kind not in (FRAGMENT, CLOSED, BEGIN):
        raise MessageError(RejectReason.MALFORMED, f"tap header: kind F, C or B expected, {kind!r} found")
    return TapHeader(kind, sequence, run, mep, n_fragments)
