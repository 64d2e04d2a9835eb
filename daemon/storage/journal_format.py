"""Records of the journal in bytes (no I/O, no clock; docs/formats/node-files.md).

A record consists of: the CRC32C of the rest (eight hexadecimal digits), a blank, the length of the body (eight
hexadecimal digits), a blank, the body (a JSON object), a newline. Each record can be read without the others, so damage
costs only the records that it hits.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import msgspec
from crc32c import crc32c

Record = dict[str, Any]

_ENCODER = msgspec.json.Encoder()
_HEADER_SIZE = 18
_HEADER = re.compile(rb"[0-9a-f]{8} [0-9a-f]{8} \{")
# Far above the size of any record. It bounds the cost of a damaged length: one checksum over this many bytes.
_MAX_BODY = 16 << 20


@dataclass(frozen=True, slots=True)
class Scan:
    """Content of a journal: the intact records in order, and (begin, end) of each damaged range of bytes."""

    records: list[Record] = field(default_factory=list)
    damage: list[tuple[int, int]] = field(default_factory=list)


def encode_record(record: Record) -> bytes:
    """The bytes of a record."""
    body = _ENCODER.encode(record)
    checked = b"%08x %s" % (len(body), body)
    return b"%08x %s\n" % (crc32c(checked), checked)


def scan_records(raw: bytes) -> Scan:
    """All intact records of `raw`; never raises."""
    scan = Scan()
    at = 0
    while at < len(raw):
        found = _record_at(raw, at)
        if found is None:
            begin = at
            at, found = _next_record(raw, at + 1)
            scan.damage.append((begin, at))
        if found is not None:
            record, at = found
            scan.records.append(record)
    return scan


def _next_record(raw: bytes, at: int) -> tuple[int, tuple[Record, int] | None]:
    """The first intact record at or after `at`, as (begin, (record, end)); (len(raw), None) if there is none."""
    while (header := _HEADER.search(raw, at)) is not None:
        found = _record_at(raw, header.start())
        if found is not None:
            return header.start(), found
        at = header.start() + 1
    return len(raw), None


def _record_at(raw: bytes, at: int) -> tuple[Record, int] | None:
    """The intact record that begins at byte `at`, and its end; None if there is none."""
    if _HEADER.match(raw, at) is None:
        return None
    end = at + _HEADER_SIZE + int(raw[at + 9 : at + 17], 16)
    if end > len(raw) or end - at > _MAX_BODY or int(raw[at : at + 8], 16) != crc32c(raw[at + 9 : end]):
        return None
    try:
        record = json.loads(raw[at + _HEADER_SIZE : end])
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    # A record without its newline is complete; the newline only helps human readers.
    return record, end + (raw[end : end + 1] == b"\n")
