"""The decisions of the trigger: HltDecReports and HltRoutingBits banks (docs/formats/trigger-banks.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from hltnode.protocol.errors import RejectReason, ReportError
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.raw_bank import RawBank

DEC_REPORTS_VERSION = 3
ROUTING_BITS_VERSION = 0
# HLT1 (1 << 8) of system 31, which no detector uses. Data of 2025 have the same value.
HLT1_SOURCE_ID = 31 << 11 | 1 << 8
# Maximum number of lines of a report. Decision id and bank length have 16 bits each; the length is the tighter bound.
MAX_LINES = (0xFFFF - 8) // 4 - 3

_ROUTING_WORDS = struct.Struct("<3I")


@dataclass(frozen=True, slots=True)
class LineReport:
    """The result of one line: `error` 3 bits, `candidates` 4 bits, `stage` 8 bits, `decision_id` 16 bits (from 1)."""

    decision: bool
    decision_id: int
    candidates: int = 0
    stage: int = 0
    error: int = 0


@dataclass(frozen=True, slots=True)
class HltDecReports:
    """The decisions of all lines for an event; `key` identifies the table of decision names."""

    key: int
    tck: int
    task_id: int
    lines: tuple[LineReport, ...]


def _check(bank: RawBank, bank_type: BankType, version: int) -> None:
    if bank.type != bank_type:
        raise ReportError(
            RejectReason.MISMATCH, f"{bank_type.name}: bank type {bank_type:d} expected, {bank.type} found"
        )
    if bank.version != version:
        raise ReportError(
            RejectReason.BAD_VERSION, f"{bank_type.name}: version {version} expected, {bank.version} found"
        )


def decode_dec_reports(bank: RawBank) -> HltDecReports:
    """Decode an HltDecReports bank of version 3.  Raises ReportError."""
    _check(bank, BankType.HLT_DEC_REPORTS, DEC_REPORTS_VERSION)
    size = len(bank.payload)
    if size < 12 or size % 4:
        raise ReportError(RejectReason.BAD_SIZE, f"{BankType.HLT_DEC_REPORTS.name}: {size} bytes, 12 + 4 n expected")
    key, tck, task_id, *words = struct.unpack(f"<{size // 4}I", bank.payload)
    lines = tuple(
        LineReport(
            decision=bool(word & 1),
            error=word >> 1 & 0x7,
            candidates=word >> 4 & 0xF,
            stage=word >> 8 & 0xFF,
            decision_id=word >> 16,
        )
        for word in words
    )
    return HltDecReports(key, tck, task_id, lines)


def decode_routing_bits(bank: RawBank) -> tuple[int, int, int]:
    """The three u32 words (HLT1, spare, HLT2) of an HltRoutingBits bank of version 0.  Raises ReportError."""
    _check(bank, BankType.HLT_ROUTING_BITS, ROUTING_BITS_VERSION)
    if len(bank.payload) != _ROUTING_WORDS.size:
        raise ReportError(
            RejectReason.BAD_SIZE,
            f"{BankType.HLT_ROUTING_BITS.name}: {_ROUTING_WORDS.size} bytes expected, {len(bank.payload)} found",
        )
    hlt1, spare, hlt2 = _ROUTING_WORDS.unpack(bank.payload)
    return hlt1, spare, hlt2
