"""Simple Python writers of the trigger banks, for tests; the node uses compiled ones (protocol/trigger_banks.cpp)."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import groupby

from hltnode.protocol.errors import RejectReason, ReportError
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.lumi_summary import LUMI_SUMMARY_VERSION, LumiSchema
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.reports import (
    DEC_REPORTS_VERSION,
    HLT1_SOURCE_ID,
    MAX_LINES,
    ROUTING_BITS_VERSION,
    HltDecReports,
)
from hltnode.protocol.raw_data.selection_reports import (
    HEADER_WORDS,
    MAX_WORDS,
    SEL_REPORTS_VERSION,
    HltSelReports,
    ReportedObject,
    SubBank,
)

MAX_INFO = 255

_ROUTING_WORDS = struct.Struct("<3I")
_WRITTEN = (SubBank.OBJECT_TYPES, SubBank.STRUCTURE, SubBank.EXTRA_INFO, SubBank.STANDARD_INFO, SubBank.HITS)


def encode_dec_reports(reports: HltDecReports, source_id: int = HLT1_SOURCE_ID) -> RawBank:
    """The raw bank, version 3.  Raises ReportError for values that do not fit."""
    name = BankType.HLT_DEC_REPORTS.name
    if len(reports.lines) > MAX_LINES:
        raise ReportError(RejectReason.OVERSIZED, f"{name}: {len(reports.lines)} lines, at most {MAX_LINES} fit")
    for line in reports.lines:
        if not (0 <= line.error < 8 and 0 <= line.candidates < 16 and 0 <= line.stage < 256):
            raise ReportError(RejectReason.OVERSIZED, f"{name}: a field of {line} is out of range")
    words = [
        line.decision | line.error << 1 | line.candidates << 4 | line.stage << 8 | line.decision_id << 16
        for line in reports.lines
    ]
    try:
        payload = struct.pack(f"<{3 + len(words)}I", reports.key, reports.tck, reports.task_id, *words)
    except struct.error as error:
        raise ReportError(RejectReason.OVERSIZED, f"{name}: {error}") from error
    return RawBank(BankType.HLT_DEC_REPORTS, DEC_REPORTS_VERSION, source_id, memoryview(payload))


def encode_routing_bits(words: tuple[int, int, int], source_id: int = HLT1_SOURCE_ID) -> RawBank:
    """The raw bank, version 0.  Raises ReportError for a word that is not a u32."""
    try:
        payload = _ROUTING_WORDS.pack(*words)
    except struct.error as error:
        raise ReportError(RejectReason.OVERSIZED, f"{BankType.HLT_ROUTING_BITS.name}: {error}") from error
    return RawBank(BankType.HLT_ROUTING_BITS, ROUTING_BITS_VERSION, source_id, memoryview(payload))


def encode_lumi_summary(numbers: Mapping[str, int], schema: LumiSchema, source_id: int = HLT1_SOURCE_ID) -> RawBank:
    """The raw bank of the stored numbers; numbers that are too large become the largest possible one.

    Raises ReportError for a counter without a number.
    """
    bits = schema.key
    for counter in schema.counters[1:]:
        if counter.name not in numbers or numbers[counter.name] < 0:
            raise ReportError(RejectReason.MALFORMED, f"{BankType.HLT_LUMI_SUMMARY.name}: no number for {counter.name}")
        bits |= min(numbers[counter.name], (1 << counter.size) - 1) << counter.offset
    payload = memoryview(bits.to_bytes(schema.size, "little"))
    return RawBank(BankType.HLT_LUMI_SUMMARY, LUMI_SUMMARY_VERSION, source_id, payload)


def encode_sel_reports(reports: HltSelReports, source_id: int = HLT1_SOURCE_ID) -> RawBank:
    """The raw bank, version 12. Raises ReportError for values that do not fit."""
    try:
        sub_banks = _encode_sub_banks(reports.objects)
    except struct.error as error:
        raise ReportError(RejectReason.OVERSIZED, f"{BankType.HLT_SEL_REPORTS.name}: {error}") from error
    ends = [HEADER_WORDS]
    ids = len(_WRITTEN)
    for i, which in enumerate(_WRITTEN):
        ends.append(ends[-1] + len(sub_banks[which]) // 4)
        ids |= which << 3 * (i + 1)
    if ends[-1] > MAX_WORDS:
        raise ReportError(
            RejectReason.OVERSIZED, f"{BankType.HLT_SEL_REPORTS.name}: {ends[-1]} words, at most {MAX_WORDS} fit"
        )
    header = struct.pack("<10I", ends[-1], ids, *ends[1:], *[0] * (HEADER_WORDS - 1 - len(ends)))
    payload = b"".join((header, *(sub_banks[which] for which in _WRITTEN)))
    return RawBank(BankType.HLT_SEL_REPORTS, SEL_REPORTS_VERSION, source_id, memoryview(payload))


def _encode_sub_banks(objects: Sequence[ReportedObject]) -> dict[SubBank, bytes]:
    n = len(objects)
    types: list[int] = []
    end = 0
    for class_id, group in groupby(reported.class_id for reported in objects):
        end += len(list(group))
        types += (end, class_id)
    structure: list[int] = []
    sequences: list[tuple[int, ...]] = []
    for reported in objects:
        if len(reported.info) > MAX_INFO or (reported.ids and reported.parts):
            raise ReportError(
                RejectReason.OVERSIZED, f"{BankType.HLT_SEL_REPORTS.name}: {reported!r:.200} cannot be written"
            )
        if reported.ids:
            structure += (1 << 1 | 1, len(sequences))
            sequences.append(reported.ids)
        else:
            structure += (len(reported.parts) << 1, *reported.parts)
    values = [value for reported in objects for value in reported.info]
    sizes = bytes(len(reported.info) for reported in objects)
    begin = 1 + len(sequences) // 2
    ends = []
    for sequence in sequences:
        begin += len(sequence)
        ends.append(begin)
    ids = [channel for sequence in sequences for channel in sequence]
    return {
        SubBank.OBJECT_TYPES: _counted(len(types) // 2, _shorts(types)),
        SubBank.STRUCTURE: _counted(n, _shorts(structure)),
        SubBank.EXTRA_INFO: _counted(n, _to_words(bytes(n))),
        SubBank.STANDARD_INFO: _counted(n, _to_words(sizes) + struct.pack(f"<{len(values)}f", *values)),
        SubBank.HITS: _shorts([len(sequences), *ends]) + struct.pack(f"<{len(ids)}I", *ids),
    }


def _shorts(values: Sequence[int]) -> bytes:
    return _to_words(struct.pack(f"<{len(values)}H", *values))


def _to_words(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _counted(count: int, content: bytes) -> bytes:
    return struct.pack("<HH", count, 1 + len(content) // 4) + content
