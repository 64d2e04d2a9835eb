"""The transport frame between feeder and node: a fixed 48-byte header, then one MFP unchanged.

Layout (little-endian): u32 magic @0, u16 version @4, u16 flags @6, u32 run @8, u32 length of the MFP in bytes @12,
u64 MEP id @16, u64 send time in ns since the epoch @24, u16 source id @32, u16 zero @34, u32 CRC32C @36 over the
header's bytes 0..35 followed by the MFP, u64 token @40.

The token comes from the welcome of the node, so a kept frame gets another one with a new welcome. The CRC does not
cover it, so that the frame need not be read again for that.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from crc32c import crc32c

from hltnode.protocol._native import set_frame_tokens
from hltnode.protocol.buffers import Buffer, byte_view
from hltnode.protocol.errors import FrameError, RejectReason
from hltnode.protocol.transport.messages import MAX_MEP_ID

__all__ = [
    "HEADER_SIZE",
    "MAGIC",
    "TOKEN_AT",
    "VERSION",
    "FrameHeader",
    "check_crc",
    "decode_header",
    "encode_frame",
    "set_frame_tokens",
]

MAGIC = 0x464E4C48
VERSION = 2
HEADER_SIZE = 48
TOKEN_AT = 40

_HEADER = struct.Struct("<IHHIIQQHHIQ")
_CHECKED_HEADER = struct.Struct("<IHHIIQQHH")
_CRC_AND_TOKEN = struct.Struct("<IQ")
_CRC_AT = 36
_CHANGE = "since version 2 it carries the token of the welcome"


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """The header of a frame: run u32, MEP id u64, source id u16, flags u16, length in bytes, send time in ns, token."""

    run: int
    mep_id: int
    source_id: int
    length: int
    flags: int
    send_time_ns: int
    crc: int
    token: int


def decode_header(buffer: Buffer, *, max_bytes: int, size: int | None = None) -> FrameHeader:
    """Decode the header of a whole frame and check size, magic, version and length. The MFP is not read.

    `max_bytes` bounds the MFP. `size` is that of the frame if `buffer` holds only its start.  Raises FrameError.
    """
    size = len(buffer) if size is None else size
    if size < HEADER_SIZE:
        raise FrameError(RejectReason.TRUNCATED, f"frame: header needs {HEADER_SIZE} bytes, got {size}")
    magic, version, flags, run, length, mep_id, send_time_ns, source, reserved, crc, token = _HEADER.unpack_from(buffer)
    if magic != MAGIC:
        raise FrameError(RejectReason.BAD_MAGIC, f"frame: magic 0x{MAGIC:08X} expected, 0x{magic:08X} found")
    if version != VERSION:
        raise FrameError(RejectReason.BAD_VERSION, f"frame: version {VERSION} expected, {version} found; {_CHANGE}")
    if length > max_bytes:
        raise FrameError(
            RejectReason.OVERSIZED,
            f"frame of source {source}, run {run}, MEP {mep_id}: MFP of {length} bytes, at most {max_bytes} allowed",
        )
    if length != size - HEADER_SIZE:
        raise FrameError(
            RejectReason.TRUNCATED if length > size - HEADER_SIZE else RejectReason.BAD_SIZE,
            f"frame of source {source}, run {run}, MEP {mep_id}: "
            f"MFP of {length} bytes announced, {size - HEADER_SIZE} received",
        )
    if reserved:
        raise FrameError(
            RejectReason.MALFORMED, f"frame of source {source}, run {run}, MEP {mep_id}: reserved field is {reserved}"
        )
    _check_mep_id(mep_id, f"frame of source {source}, run {run}")
    return FrameHeader(run, mep_id, source, length, flags, send_time_ns, crc, token)


def _check_mep_id(mep_id: int, where: str) -> None:
    if mep_id > MAX_MEP_ID:
        raise FrameError(RejectReason.MALFORMED, f"{where}: MEP {mep_id}, at most {MAX_MEP_ID} expected")


def check_crc(header: FrameHeader, buffer: Buffer) -> None:
    """Check the CRC32C of the whole frame `buffer`, whose decoded header is `header`.  Raises FrameError."""
    view = byte_view(buffer)
    crc = crc32c(view[HEADER_SIZE:], crc32c(view[:_CRC_AT]))
    if crc != header.crc:
        raise FrameError(
            RejectReason.BAD_CRC,
            f"frame of source {header.source_id}, run {header.run}, MEP {header.mep_id}: "
            f"CRC32C 0x{header.crc:08X} announced, 0x{crc:08X} computed",
        )


def encode_frame(
    mfp: Buffer, *, run: int, mep_id: int, source_id: int, send_time_ns: int = 0, flags: int = 0, token: int = 0
) -> bytes:
    """The frame that carries `mfp`.  Raises FrameError for a field that does not fit."""
    _check_mep_id(mep_id, f"frame of source {source_id}, run {run}")
    try:
        checked = _CHECKED_HEADER.pack(MAGIC, VERSION, flags, run, len(mfp), mep_id, send_time_ns, source_id, 0)
        rest = _CRC_AND_TOKEN.pack(crc32c(mfp, crc32c(checked)), token)
    except struct.error as error:
        raise FrameError(
            RejectReason.MALFORMED, f"frame of source {source_id}, run {run}, MEP {mep_id}: {error}"
        ) from error
    return b"".join((checked, rest, mfp))
