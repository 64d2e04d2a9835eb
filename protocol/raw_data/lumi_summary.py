"""HltLumiSummary banks: counters of an event for the measurement of luminosity (docs/formats/trigger-banks.md).

A schema, a small document, gives the places of the counters; the bank names it by its key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property

from hltnode.protocol.errors import RejectReason, ReportError
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.raw_bank import RawBank

LUMI_SUMMARY_VERSION = 2
ENCODING_KEY = "encodingKey"
"""The first counter of each schema: it holds the key."""

_NAME = BankType.HLT_LUMI_SUMMARY.name
_SCHEMA_VERSION = 0
_KEY_BITS = 32


@dataclass(frozen=True, slots=True)
class LumiCounter:
    """Place of a counter: `size` bits from bit `offset` of the bank, in one word of 32 bits.

    The counted value is (number - shift) / scale.
    """

    name: str
    offset: int
    size: int
    shift: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class LumiSchema:
    """The counters of a bank of `size` bytes.

    Raises ReportError if a counter lies outside the bank or in two words, if the bank has no whole words, or if the
    first counter is not the key.
    """

    size: int
    counters: tuple[LumiCounter, ...]

    def __post_init__(self) -> None:
        key = self.counters[0] if self.counters else None
        if key is None or (key.name, key.offset, key.size) != (ENCODING_KEY, 0, _KEY_BITS):
            raise ReportError(RejectReason.MALFORMED, f"{_NAME}: the first counter is {key}, not {ENCODING_KEY}")
        if self.size % 4:
            raise ReportError(RejectReason.MALFORMED, f"{_NAME}: {self.size} bytes are not whole words")
        for counter in self.counters:
            inside = counter.offset >= 0 and counter.offset + counter.size <= 8 * self.size
            if not (counter.size >= 1 and inside and counter.offset % 32 + counter.size <= 32 and counter.scale):
                raise ReportError(
                    RejectReason.MALFORMED, f"{_NAME}: {counter} does not lie in one word of {self.size} bytes"
                )

    @classmethod
    def packed(cls, bits: Iterable[tuple[str, int]]) -> LumiSchema:
        """The schema for counters of given name and number of bits (1 to 32): the largest comes first, each goes to the
        first word with room. Raises ReportError."""
        room: list[int] = []
        counters = []
        for name, size in ((ENCODING_KEY, _KEY_BITS), *sorted(bits, key=lambda counter: -counter[1])):
            word = next((i for i, free in enumerate(room) if free >= size), len(room))
            if word == len(room):
                room.append(32)
            counters.append(LumiCounter(name, 32 * word + 32 - room[word], size))
            room[word] -= size
        return cls(4 * len(room), tuple(counters))

    @property
    def document(self) -> dict[str, object]:
        """The schema as JSON objects."""
        return {
            "version": _SCHEMA_VERSION,
            "size": self.size,
            "counters": [asdict(counter) for counter in self.counters],
        }

    @cached_property
    def key(self) -> int:
        """32 bits of the SHA-256 of the schema's canonical JSON text."""
        text = json.dumps(self.document, sort_keys=True, separators=(",", ":"))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def lumi_key(bank: RawBank) -> int:
    """The schema key of an HltLumiSummary bank of version 2. Raises ReportError."""
    if bank.type != BankType.HLT_LUMI_SUMMARY:
        raise ReportError(
            RejectReason.MISMATCH, f"{_NAME}: bank type {BankType.HLT_LUMI_SUMMARY:d} expected, {bank.type} found"
        )
    if bank.version != LUMI_SUMMARY_VERSION:
        raise ReportError(
            RejectReason.BAD_VERSION, f"{_NAME}: version {LUMI_SUMMARY_VERSION} expected, {bank.version} found"
        )
    if len(bank.payload) < 4 or len(bank.payload) % 4:
        raise ReportError(RejectReason.BAD_SIZE, f"{_NAME}: {len(bank.payload)} bytes, 4 + 4 n expected")
    return int.from_bytes(bank.payload[:4], "little")


def decode_lumi_summary(bank: RawBank, schema: LumiSchema) -> dict[str, float]:
    """The counted values by name. Raises ReportError, also for a bank that names another schema."""
    key = lumi_key(bank)
    if key != schema.key or len(bank.payload) != schema.size:
        raise ReportError(
            RejectReason.MISMATCH,
            f"{_NAME}: schema 0x{key:08X} of {len(bank.payload)} bytes, 0x{schema.key:08X} of {schema.size} expected",
        )
    number = int.from_bytes(bank.payload, "little")
    return {
        counter.name: ((number >> counter.offset & (1 << counter.size) - 1) - counter.shift) / counter.scale
        for counter in schema.counters[1:]
    }
