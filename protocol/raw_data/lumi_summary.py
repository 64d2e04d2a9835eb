"""HltLumiSummary banks: counters of an event for the measurement of luminosity (docs/formats/trigger-banks.md).

A schema, a small document, gives the places of the counters; the bank names it by its key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True, slots=True)
class CounterRange:
    """A counter to be packed, and its largest stored number; a stored number is shift + scale times the counted one.

    Raises ValueError if the number does not fit in 32 bits, or for a scale of 0.
    """

    name: str
    largest: int
    shift: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not (self.name and 1 <= self.largest < 1 << _KEY_BITS and np.isfinite([self.shift, self.scale]).all()):
            raise ValueError(f"counter {self.name!r}: expected a largest number of 1 to 2^32 - 1 and finite factors")
        if self.scale == 0:
            raise ValueError(f"counter {self.name!r}: expected a scale that is not 0")

    @property
    def bits(self) -> int:
        """Bits that the largest number needs."""
        return self.largest.bit_length()

    @property
    def largest_stored(self) -> int:
        """The largest number of these bits."""
        return (1 << self.bits) - 1


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
        names = [counter.name for counter in self.counters]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ReportError(RejectReason.MALFORMED, f"{_NAME}: two counters have the name {', '.join(twice)}")
        for counter in self.counters:
            inside = counter.offset >= 0 and counter.offset + counter.size <= 8 * self.size
            if not (counter.size >= 1 and inside and counter.offset % 32 + counter.size <= 32 and counter.scale):
                raise ReportError(
                    RejectReason.MALFORMED, f"{_NAME}: {counter} does not lie in one word of {self.size} bytes"
                )

    @classmethod
    def packed(cls, bits: Iterable[tuple[str, int]]) -> LumiSchema:
        """The schema for counters of given name and number of bits (1 to 32), packed as by `of`. Raises ReportError."""
        return cls._first_fit(LumiCounter(name, 0, size) for name, size in bits)

    @classmethod
    def of(cls, counters: Iterable[CounterRange]) -> LumiSchema:
        """The schema for counters: the largest comes first, of equal ones the first given one; each goes to the first
        word with room. Raises ReportError for a name that occurs twice."""
        return cls._first_fit(
            LumiCounter(each.name, 0, each.bits, float(each.shift), float(each.scale)) for each in counters
        )

    @classmethod
    def of_document(cls, document: object) -> LumiSchema:
        """The schema of a document (the property `document`), also of LHCb, which leaves out shifts of 0 and scales of
        1. Raises ReportError for another content."""
        try:
            if not isinstance(document, dict) or document["version"] != _SCHEMA_VERSION:
                raise ValueError(f"not a schema of version {_SCHEMA_VERSION}")
            counters = tuple(
                LumiCounter(
                    str(each["name"]),
                    int(each["offset"]),
                    int(each["size"]),
                    float(each.get("shift", 0.0)),
                    float(each.get("scale", 1.0)),
                )
                for each in document["counters"]
            )
            return cls(int(document["size"]), counters)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ReportError(RejectReason.MALFORMED, f"{_NAME}: the schema has no valid counters: {error}") from error

    @classmethod
    def _first_fit(cls, given: Iterable[LumiCounter]) -> LumiSchema:
        room: list[int] = []
        counters = []
        key = LumiCounter(ENCODING_KEY, 0, _KEY_BITS)
        for counter in (key, *sorted(given, key=lambda counter: -counter.size)):
            word = next((i for i, free in enumerate(room) if free >= counter.size), len(room))
            if word == len(room):
                room.append(32)
            counters.append(replace(counter, offset=32 * word + 32 - room[word]))
            room[word] -= counter.size
        return cls(4 * len(room), tuple(counters))

    def unpack(self, words: NDArray[np.uint32]) -> Mapping[str, NDArray[np.float64]]:
        """The counted values f64[n] by name of n banks u32[n, size / 4]; those of the key are left out.

        Raises ValueError for another shape.
        """
        if words.ndim != 2 or words.shape[1] != self.size // 4:
            raise ValueError(f"{_NAME}: words of shape {words.shape}, (n, {self.size // 4}) expected")
        return {
            each.name: (self._numbers(each, words).astype(np.float64) - each.shift) / each.scale
            for each in self.counters[1:]
        }

    def is_largest(self, name: str, words: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """bool[n]: whether a counter of n banks has the largest number, so that it may have been larger."""
        each = next(counter for counter in self.counters if counter.name == name)
        full: NDArray[np.bool_] = self._numbers(each, words) == (1 << each.size) - 1
        return full

    @staticmethod
    def _numbers(each: LumiCounter, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The stored numbers of a counter."""
        numbers: NDArray[np.uint32] = words[:, each.offset // 32] >> np.uint32(each.offset % 32)
        return numbers & np.uint32((1 << each.size) - 1)

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
