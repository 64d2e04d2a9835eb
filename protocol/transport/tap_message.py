"""Messages of the taps of a node: fragments, closed MEPs, whole MEPs, new readers (docs/formats/tap-message.md)."""

import struct
from collections.abc import Sequence

import msgspec

from hltnode.protocol.buffers import Buffer, byte_view
from hltnode.protocol.errors import MessageError, RejectReason

FRAGMENT = b"F"
CLOSED = b"C"
MEP = b"M"
BEGIN = b"B"

# Kind, message number u64, run u32, MEP id u64, number of fragments u16 (of a MEP).
_HEADER = struct.Struct("<cQIQH")
# Events per MEP, number of missing sources.
_ABOUT = struct.Struct("<HH")
# As the name in a hello.
MAX_CHAIN_BYTES = 256
# Parts of the message of a whole MEP: header, MEP, events per MEP with the missing sources.
TAPPED_PARTS = 3


class TapHeader(msgspec.Struct, frozen=True):
    """First part of a tap message; `kind` is FRAGMENT (the frame is the second part), CLOSED, MEP or BEGIN."""

    kind: bytes
    sequence: int
    run: int
    mep: int
    n_fragments: int


class TappedMep(msgspec.Struct, frozen=True):
    """A whole MEP of a tap.

    `content` is a Run-3 MEP, which is not checked here; `events_per_mep` is the largest number of events of a MEP of
    the run; `missing` are the source ids without a fragment in it; `chain` is the chain of the node.
    """

    header: TapHeader
    content: Buffer
    events_per_mep: int
    missing: tuple[int, ...]
    chain: str


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
    if kind not in (FRAGMENT, CLOSED, MEP, BEGIN):
        raise MessageError(RejectReason.MALFORMED, f"tap header: kind F, C, M or B expected, {kind!r} found")
    return TapHeader(kind, sequence, run, mep, n_fragments)


def encode_tapped_about(events_per_mep: int, missing: Sequence[int], chain: str) -> bytes:
    """The third part of a whole MEP: events per MEP, number of missing sources, their ids (u16 each), and the name of
    the chain. Raises MessageError."""
    try:
        return struct.pack(f"<{2 + len(missing)}H", events_per_mep, len(missing), *missing) + chain.encode()
    except struct.error as error:
        raise MessageError(RejectReason.MALFORMED, f"tapped MEP: {error}") from error


def decode_tapped(parts: Sequence[Buffer]) -> TappedMep | None:
    """The MEP of a message of a tap of whole MEPs, None for a message that only tells that a reader has come.

    Raises MessageError, also for the messages of a tap of fragments.
    """
    if not parts:
        raise MessageError(RejectReason.BAD_SIZE, "tap message without parts")
    header = decode_tap_header(parts[0])
    if header.kind == BEGIN and len(parts) == 1:
        return None
    if header.kind != MEP or len(parts) != TAPPED_PARTS:
        raise MessageError(
            RejectReason.MALFORMED,
            f"tap message: a whole MEP in {TAPPED_PARTS} parts expected, kind {header.kind!r} in {len(parts)} found",
        )
    about = byte_view(parts[2])
    if len(about) < _ABOUT.size:
        raise MessageError(RejectReason.TRUNCATED, f"tapped MEP: third part of {len(about)} bytes")
    events_per_mep, n_missing = _ABOUT.unpack_from(about)
    end = _ABOUT.size + 2 * n_missing
    if not end < len(about) <= end + MAX_CHAIN_BYTES:
        raise MessageError(RejectReason.BAD_SIZE, f"tapped MEP: third part of {len(about)} bytes, {n_missing} sources")
    try:
        chain = str(about[end:], "utf-8")
    except UnicodeDecodeError as error:
        raise MessageError(RejectReason.MALFORMED, f"tapped MEP: name of the chain: {error}") from error
    if not events_per_mep or not chain.isprintable():
        raise MessageError(RejectReason.MALFORMED, f"tapped MEP: {events_per_mep} events per MEP, chain {chain!r}")
    missing = struct.unpack_from(f"<{n_missing}H", about, _ABOUT.size)
    return TappedMep(header, parts[1], events_per_mep, missing, chain)
