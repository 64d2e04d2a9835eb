"""MDF: the file format of raw events, records back to back without file header or trailer (docs/formats/mdf.md)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from hltnode.protocol._native import jenkins
from hltnode.protocol.buffers import Buffer, byte_view
from hltnode.protocol.errors import BankError, MdfError, RejectReason
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.raw_bank import HEADER_SIZE as BANK_HEADER_SIZE
from hltnode.protocol.raw_data.raw_bank import RawBank, iter_banks

GENERIC_HEADER_SIZE = 20
# The sub-header of versions 1 and 3: routing bits u32[4], run, orbit, bunch id.
SUBHEADER_SIZE = 28
HEADER_SIZE = GENERIC_HEADER_SIZE + SUBHEADER_SIZE
RUN_OFFSET = GENERIC_HEADER_SIZE + 16
READABLE_VERSIONS = (1, 3)
DATA_TYPE_BANKS = 1
DATA_TYPE_MEP = 2
# ROOT fills a block up to 16 MB. The limit bounds the time for a body of empty blocks: each starts zlib anew.
MAX_BLOCKS = 4096
# Largest unpacked body of a compressed record. A raw event has about 150 kB; a record of a hundred times that size is
# damaged or hostile.
MAX_BODY_SIZE = 64 << 20

GENERIC_HEADER = struct.Struct("<4I4B")
_SUBHEADER = struct.Struct("<4I3I")
_CHECKSUM_FROM = 16
_ALL_ROUTING_BITS = (0xFFFF_FFFF,) * 4

# A ROOT block: two letters of algorithm, a method byte, 24-bit compressed size, 24-bit raw size.
_ROOT_BLOCK_HEADER_SIZE = 9
_ROOT_ZLIB_TAG = b"ZL"
_ROOT_ZLIB_METHOD = 8
# Sizes are 24 bits wide; the margin holds the overhead of zlib for a block that does not shrink.
_ROOT_BLOCK_RAW_SIZE = 0xFF0000


@dataclass(frozen=True, slots=True)
class MdfHeader:
    """Header of one record.

    `record_size` in bytes with all headers; `checksum` 0 = none; `compression` the ROOT byte (low nibble = level);
    `version` of the sub-header; `routing_bits` four u32 words; `run`, `orbit`, `bunch_id` u32.
    """

    record_size: int
    checksum: int
    compression: int
    version: int
    routing_bits: tuple[int, int, int, int]
    run: int
    orbit: int
    bunch_id: int


@dataclass(frozen=True, slots=True)
class MdfRecord:
    """One event: its header and the (unpacked) bytes of its raw banks."""

    header: MdfHeader
    body: memoryview

    def banks(self) -> list[RawBank]:
        """The raw banks of the event, views into the body.  Raises BankError."""
        return list(iter_banks(self.body))


def jenkins_checksum(buffer: Buffer) -> int:
    """Bob Jenkins' one-at-a-time hash with seed 0 over signed bytes, as MDF uses it; about 2 ms per MB."""
    return jenkins(byte_view(buffer))


def iter_records(buffer: Buffer, *, verify_checksum: bool = True) -> Iterator[MdfRecord]:
    """The records that fill `buffer`, in order; uncompressed bodies are views into it.

    Checks the three copies of the size, the version and the checksum (unless it is 0 or `verify_checksum` is false),
    and unpacks zlib-compressed bodies. Raises MdfError at the first damaged record, after it has yielded those before.
    Records that hold a MEP (data type 2) or time-aligned events (TAE) are refused.
    """
    view = byte_view(buffer)
    at = 0
    while at < len(view):
        record = parse_record(view[at:], f"MDF record at byte {at}", verify_checksum=verify_checksum)
        yield record
        at += record.header.record_size


def is_mdf(head: Buffer) -> bool:
    """True if a file that begins with these bytes, 20 or more, consists of MDF records with raw banks."""
    return len(head) >= GENERIC_HEADER_SIZE and GENERIC_HEADER.unpack_from(head)[6] == DATA_TYPE_BANKS


def uncompressed(record: memoryview, where: str, *, verify_checksum: bool) -> bytes:
    """A record with its raw banks unpacked and without checksum.

    verify_checksum: check the checksum and the raw banks. Raises MdfError; its text starts with `where`.
    """
    parsed = parse_record(record, where, verify_checksum=verify_checksum)
    if verify_checksum:
        try:
            parsed.banks()
        except BankError as error:
            raise MdfError(error.reason, f"{where}: {error}") from error
    return encode_record(parsed.body, run=parsed.header.run, checksum=False)


def check_record_size(view: memoryview, where: str) -> int:
    """The size in bytes of the record at the start of `view`; its three copies must agree and fit `view`.

    Raises MdfError; its text starts with `where`.
    """
    size = announced_record_size(view, where)
    if size > len(view):
        raise MdfError(RejectReason.TRUNCATED, f"{where}: {size} bytes announced, {len(view)} are left")
    return size


def announced_record_size(head: Buffer, where: str) -> int:
    """The size in bytes of the record that begins with these bytes; its three copies must agree.

    Raises MdfError; its text starts with `where`.
    """
    view = byte_view(head)
    if len(view) < GENERIC_HEADER_SIZE:
        raise MdfError(
            RejectReason.TRUNCATED, f"{where}: header needs {GENERIC_HEADER_SIZE} bytes, {len(view)} are left"
        )
    size, second, third = struct.unpack_from("<3I", view)
    if not size == second == third:
        raise MdfError(RejectReason.MALFORMED, f"{where}: the three sizes differ: {size}, {second}, {third}")
    if size < GENERIC_HEADER_SIZE:
        raise MdfError(RejectReason.BAD_SIZE, f"{where}: size {size} is less than a header")
    return int(size)


def parse_record(view: memoryview, where: str, *, verify_checksum: bool = True) -> MdfRecord:
    """The record at the start of `view`. Raises MdfError; its text starts with `where`."""
    size = check_record_size(view, where)
    _, _, _, checksum, compression, version_and_length, data_type, _ = GENERIC_HEADER.unpack_from(view)
    version = version_and_length >> 4
    if version not in READABLE_VERSIONS:
        raise MdfError(
            RejectReason.BAD_VERSION, f"{where}: sub-header version {version}, {READABLE_VERSIONS} are supported"
        )
    if (version_and_length & 0xF) * 4 != SUBHEADER_SIZE or size < HEADER_SIZE:
        raise MdfError(
            RejectReason.BAD_SIZE,
            f"{where}: sub-header of {(version_and_length & 0xF) * 4} bytes in a record of {size}, "
            f"version {version} has {SUBHEADER_SIZE}",
        )
    if data_type != DATA_TYPE_BANKS:
        what = "a MEP" if data_type == DATA_TYPE_MEP else "unknown data"
        raise MdfError(
            RejectReason.BAD_VERSION, f"{where}: data type {data_type} ({what}), {DATA_TYPE_BANKS} (banks) expected"
        )
    if verify_checksum and checksum:
        computed = jenkins_checksum(view[_CHECKSUM_FROM:size])
        if computed != checksum:
            raise MdfError(
                RejectReason.BAD_CHECKSUM, f"{where}: checksum 0x{checksum:08X} announced, 0x{computed:08X} computed"
            )
    *routing_bits, run, orbit, bunch_id = _SUBHEADER.unpack_from(view, GENERIC_HEADER_SIZE)
    body = view[HEADER_SIZE:size]
    if compression & 0xF:
        body = _unpack_root_blocks(body, where)
    if len(body) >= BANK_HEADER_SIZE and body[4] == BankType.TAE_HEADER:
        raise MdfError(RejectReason.BAD_VERSION, f"{where}: time-aligned events (TAE) are not supported")
    first, second, third, fourth = routing_bits
    header = MdfHeader(size, checksum, compression, version, (first, second, third, fourth), run, orbit, bunch_id)
    return MdfRecord(header, body)


def _unpack_root_blocks(packed: memoryview, where: str) -> memoryview:
    """Unpack the ROOT blocks that fill `packed`; the memory used is bounded by MAX_BODY_SIZE."""
    parts: list[bytes] = []
    total = 0
    at = 0
    while at < len(packed):
        if len(parts) == MAX_BLOCKS:
            raise MdfError(RejectReason.OVERSIZED, f"{where}: body of more than {MAX_BLOCKS} compressed blocks")
        data_at = at + _ROOT_BLOCK_HEADER_SIZE
        header = bytes(packed[at:data_at])
        if len(header) < _ROOT_BLOCK_HEADER_SIZE:
            raise MdfError(RejectReason.TRUNCATED, f"{where}: compressed block at byte {at} of the body has no header")
        if header[:2] != _ROOT_ZLIB_TAG:
            raise MdfError(
                RejectReason.BAD_VERSION,
                f"{where}: compression algorithm {header[:2]!r}, only {_ROOT_ZLIB_TAG!r} is supported",
            )
        packed_size = int.from_bytes(header[3:6], "little")
        raw_size = int.from_bytes(header[6:9], "little")
        end = data_at + packed_size
        if end > len(packed):
            raise MdfError(
                RejectReason.TRUNCATED,
                f"{where}: compressed block of {packed_size} bytes announced, {len(packed) - data_at} are left",
            )
        total += raw_size
        if total > MAX_BODY_SIZE:
            raise MdfError(RejectReason.OVERSIZED, f"{where}: body unpacks to more than {MAX_BODY_SIZE} bytes")
        # max_length 0 would mean "no limit"; one byte more than announced reveals a block that is too long.
        unpacker = zlib.decompressobj()
        try:
            part = unpacker.decompress(packed[data_at:end], raw_size + 1)
        except zlib.error as error:
            raise MdfError(
                RejectReason.MALFORMED, f"{where}: compressed block at byte {at} of the body: {error}"
            ) from error
        if len(part) != raw_size or not unpacker.eof or unpacker.unused_data:
            raise MdfError(
                RejectReason.BAD_SIZE,
                f"{where}: compressed block at byte {at} of the body does not unpack to its {raw_size} bytes",
            )
        parts.append(part)
        at = end
    return memoryview(b"".join(parts))


def _pack_root_blocks(body: Buffer, level: int) -> bytes:
    view = byte_view(body)
    parts: list[bytes] = []
    for start in range(0, len(view), _ROOT_BLOCK_RAW_SIZE):
        raw = view[start : start + _ROOT_BLOCK_RAW_SIZE]
        packed = zlib.compress(raw, level)
        parts.append(_ROOT_ZLIB_TAG + bytes((_ROOT_ZLIB_METHOD,)))
        parts.append(len(packed).to_bytes(3, "little") + len(raw).to_bytes(3, "little"))
        parts.append(packed)
    return b"".join(parts)


def encode_record(
    banks: Buffer,
    *,
    run: int,
    orbit: int = 0,
    bunch_id: int = 0,
    routing_bits: tuple[int, int, int, int] = _ALL_ROUTING_BITS,
    version: int = 3,
    checksum: bool = True,
    compression: int = 0,
) -> bytes:
    """One record around the raw banks of an event (the bytes that encode_banks gives).

    `compression` is the zlib level, 0 = none.  Raises MdfError for values that do not fit.
    """
    if version not in READABLE_VERSIONS:
        raise MdfError(RejectReason.BAD_VERSION, f"MDF sub-header version {version}, {READABLE_VERSIONS} are supported")
    if not 0 <= compression <= 9:
        raise MdfError(RejectReason.MALFORMED, f"MDF compression level {compression}, 0..9 expected")
    body = _pack_root_blocks(banks, compression) if compression else banks
    size = HEADER_SIZE + len(body)
    try:
        checked = b"".join(
            (
                bytes((compression, version << 4 | SUBHEADER_SIZE // 4, DATA_TYPE_BANKS, 0)),
                _SUBHEADER.pack(*routing_bits, run, orbit, bunch_id),
                body,
            )
        )
        sizes = struct.pack("<4I", size, size, size, jenkins_checksum(checked) if checksum else 0)
    except struct.error as error:
        raise MdfError(RejectReason.OVERSIZED, f"MDF record of {size} bytes, run {run}: {error}") from error
    return sizes + checked
