"""Raw banks: every sub-detector writes the data of one event in this unit (docs/formats/raw-bank.md)."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol._native import MAX_BANKS_OF_EVENT, scan_banks
from hltnode.protocol._native import encode_banks as encode_valid_banks
from hltnode.protocol.buffers import Buffer, byte_view
from hltnode.protocol.errors import BankError, RejectReason

MAGIC = 0xCBCB
HEADER_SIZE = 8
# The length field is 16 bits wide and counts the header.
MAX_PAYLOAD_SIZE = 0xFFFF - HEADER_SIZE

# u16 magic, u16 length in bytes (header included, padding not), u8 type, u8 version, 16-bit source id.  The field is
# signed in LHCb's own structure; ids of Run 3 use all 16 bits, so this module reads it as unsigned.
_HEADER = struct.Struct("<HHBBH")
_PADDING = (b"", b"\0\0\0", b"\0\0", b"\0")


class RawBank(NamedTuple):
    """One raw bank: `type` and `version` u8, `source_id` u16, `payload` a view of bytes, without header or padding."""

    type: int
    version: int
    source_id: int
    payload: memoryview


def iter_banks(buffer: Buffer) -> Iterator[RawBank]:
    """The raw banks that fill `buffer`, in order, as views into it.

    Each bank starts at a multiple of 4 bytes from the start of the buffer. Raises BankError at the first bank that is
    damaged or does not fit, or exceeds the number of banks of an event, after it has yielded the banks before.
    """
    view = byte_view(buffer)
    banks, at = scan_banks(view, RawBank)
    yield from banks
    end = len(view)
    if at < end:
        if len(banks) == MAX_BANKS_OF_EVENT:
            raise BankError(
                RejectReason.OVERSIZED,
                f"raw bank at byte {at}: more than {MAX_BANKS_OF_EVENT} banks in one event",
            )
        if end - at < HEADER_SIZE:
            raise BankError(
                RejectReason.TRUNCATED, f"raw bank at byte {at}: header needs {HEADER_SIZE} bytes, {end - at} are left"
            )
        magic, length, bank_type, _, source = _HEADER.unpack_from(view, at)
        if magic != MAGIC:
            raise BankError(
                RejectReason.BAD_MAGIC, f"raw bank at byte {at}: magic 0x{MAGIC:04X} expected, 0x{magic:04X} found"
            )
        if length < HEADER_SIZE:
            raise BankError(
                RejectReason.BAD_SIZE,
                f"raw bank at byte {at}, type {bank_type}, source {source}: length {length} is less than its header",
            )
        raise BankError(
            RejectReason.TRUNCATED,
            f"raw bank at byte {at}, type {bank_type}, source {source}: "
            f"{(length + 3) & ~3} bytes with padding announced, {end - at} are left",
        )


def cut_into_banks(
    stream: bytes, ends: NDArray[np.int64], bank_type: int, version: int, sources: Sequence[int]
) -> list[RawBank]:
    """Banks with consecutive payloads in `stream`, as views that end at `ends`; `sources` repeat as needed."""
    view = memoryview(stream)
    begin = 0
    banks = []
    for source, end in zip(itertools.cycle(sources), ends.tolist(), strict=False):
        banks.append(RawBank(bank_type, version, source, view[begin:end]))
        begin = end
    return banks


def encode_bank(bank: RawBank) -> bytes:
    """Header, payload and padding to 4 bytes.

    Raises BankError for a payload over 65,527 bytes or a field out of range.
    """
    length = HEADER_SIZE + len(bank.payload)
    if length > 0xFFFF:
        raise BankError(
            RejectReason.OVERSIZED,
            f"raw bank type {bank.type}, source {bank.source_id}: "
            f"payload of {len(bank.payload)} bytes, at most {MAX_PAYLOAD_SIZE} fit",
        )
    try:
        header = _HEADER.pack(MAGIC, length, bank.type, bank.version, bank.source_id)
    except struct.error as error:
        raise BankError(
            RejectReason.MALFORMED,
            f"raw bank type {bank.type}, version {bank.version}, source {bank.source_id}: {error}",
        ) from error
    return b"".join((header, bank.payload, _PADDING[length & 3]))


def encode_banks(banks: Iterable[RawBank]) -> bytes:
    """The raw banks back to back, the body of an MDF record; raises BankError as encode_bank does."""
    several = list(banks)
    try:
        return encode_valid_banks(several)
    except ValueError:
        # Encode one by one, so that the error names the bank and the reason.
        return b"".join(map(encode_bank, several))
