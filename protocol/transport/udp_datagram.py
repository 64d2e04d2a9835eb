"""Datagrams of UDP senders: a header of 32 bytes, then one MFP (docs/formats/udp-datagram.md)."""

import struct
from enum import IntFlag
from typing import NamedTuple

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import FrameError, RejectReason

DATAGRAM_MAGIC = 0x554E4C48
DATAGRAM_VERSION = 1
DATAGRAM_HEADER_SIZE = 32
MAX_SEQUENCE = 0xFFFFFFFE
_HEADER = struct.Struct("<IHHIIIHHII")


class DatagramFlags(IntFlag):
    """Flags of a datagram; END_OF_RUN needs END_OF_BURST."""

    START_OF_BURST = 1
    END_OF_BURST = 2
    END_OF_RUN = 4


NO_FLAGS = DatagramFlags(0)


class DatagramHeader(NamedTuple):
    """The fields of the header. `sequence` counts the packets of a source in a burst, from 0."""

    run: int
    burst: int
    sequence: int
    source: int
    flags: DatagramFlags


def encode_datagram(
    mfp: Buffer, *, run: int, burst: int, sequence: int, source: int, flags: DatagramFlags = NO_FLAGS
) -> bytes:
    """A datagram with an MFP. Raises FrameError: a value does not fit its field."""
    try:
        header = _HEADER.pack(DATAGRAM_MAGIC, DATAGRAM_VERSION, flags, run, burst, sequence, source, 0, len(mfp), 0)
    except struct.error as error:
        raise FrameError(RejectReason.OVERSIZED, f"a field of the datagram: {error}") from None
    return header + bytes(mfp)


def decode_datagram(datagram: bytes) -> tuple[DatagramHeader, memoryview]:
    """Header and MFP of a datagram; the MFP is not checked. Raises FrameError."""
    if len(datagram) < DATAGRAM_HEADER_SIZE:
        raise FrameError(RejectReason.TRUNCATED, f"datagram of {len(datagram)} bytes, at least 32 expected")
    magic, version, flags, run, burst, sequence, source, zero, length, zeros = _HEADER.unpack_from(datagram)
    if magic != DATAGRAM_MAGIC:
        raise FrameError(RejectReason.BAD_MAGIC, f"magic 0x{magic:08x}, 0x{DATAGRAM_MAGIC:08x} expected")
    if version != DATAGRAM_VERSION:
        raise FrameError(RejectReason.BAD_VERSION, f"version {version}, {DATAGRAM_VERSION} expected")
    if length != len(datagram) - DATAGRAM_HEADER_SIZE:
        raise FrameError(
            RejectReason.BAD_SIZE, f"an MFP of {length} bytes is announced, {len(datagram) - 32} bytes follow"
        )
    is_known = flags < 8 and not (flags & DatagramFlags.END_OF_RUN and not flags & DatagramFlags.END_OF_BURST)
    if zero or zeros or sequence > MAX_SEQUENCE or not is_known:
        raise FrameError(RejectReason.MALFORMED, f"flags {flags}, sequence {sequence}, reserved {zero}, {zeros}")
    header = DatagramHeader(run, burst, sequence, source, DatagramFlags(flags))
    return header, memoryview(datagram)[DATAGRAM_HEADER_SIZE:]
