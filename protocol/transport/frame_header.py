"""The transport frame between feeder and node: a fixed 40-byte header, then one MFP unchanged.

Layout (little-endian): u32 magic @0, u16 version @4, u16 flags @6, u32 run @8, u32 length of the MFP in bytes @12,
u64 MEP id @16, u64 send time in ns since the epoch @24, u16 source id @32, u16 zero @34, u32 CRC32C @36 over the
header's bytes 0..35 followed by the MFP.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from crc32c import crc32c

from hltnode.protocol.buffers import Buffer, byte_view
from hltnode.protocol.errors import FrameError, RejectReason
from hltnode.protocol.transport.messages import MAX_MEP_ID

MAGIC = 0x464E4C48
VERSION = 1
HEADER_SIZE = 40

_HEADER = struct.Struct("<IHHIIQQHHI")
_CHECKED_HEADER = struct.Struct("<IHHIIQQHH")
_CRC = struct.Struct("<I")
_CRC_AT = 36


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """The header of a frame: run u32, MEP id u64, source id u16, flags u16, length in bytes, send time in ns."""

    run: int
    mep_id: int
    source_id: int
    length: int
    flags: int
    send_time_ns: int
    crc: int


def decode_header(buffer: Buffer, *, max_bytes: int) -> FrameHeader:
    """Decode the header of a whole frame and check size, magic, version and length. The MFP is not read.

    `max_bytes` bounds the MFP.  Raises FrameError.
    """
    size = len(buffer)
    if size < HEADER_SIZE:
        raise FrameError(RejectReason.TRUNCATED, f"frame: header needs {HEADER_SIZE} bytes, got {size}")
    magic, version, flags, run, length, mep_id, send_time_ns, source, reserved, crc = _HEADER.unpack_from(buffer)
    if magic != MAGIC:
        raise FrameError(RejectReason.BAD_MAGIC, f"frame: magic 0x{MAGIC:08X} expected, 0x{magic:08X} found")
    if version != VERSION:
        raise FrameError(RejectReason.BAD_VERSION, f"frame: version {VERSION} expected, {version} found")
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
    return FrameHeader(run, mep_id, source, length, flags, send_time_ns, crc)


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


def encode_frame(mfp: Buffer, *, run: int, mep_id: int, source_id: int, send_time_ns: int = 0, flags: int = 0) -> bytes:
    """The frame that carries `mfp`.  Raises FrameError for a field that does not fit."""
    _check_mep_id(mep_id, f"frame of source {source_id}, run {run}")
    try:
        checked = _CHECKED_HEADER.pack(MAGIC, VERSION, flags, run, len(mfp), mep_id, send_time_ns, source_id, 0)
    except struct.error as error:
        raise FrameError(
            RejectReason.MALFORMED, f"frame of source {source_id}, run {run}, MEP {mep_id}: {error}"
        ) from error
    return b"".join((checked, _CRC.pack(crc32c(mfp, crc32c(checked))), mfp))
