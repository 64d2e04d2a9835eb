"""Decision reports and routing bits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import RawBank, RejectReason, encode_bank, iter_records
from hltnode.protocol.errors import ReportError
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.reports import (
    MAX_LINES,
    HltDecReports,
    LineReport,
    decode_dec_reports,
    decode_routing_bits,
)
from tests.protocol.raw_data.report_encoders import encode_dec_reports, encode_routing_bits
from tests.protocol.strategies import u16, u32

lines = st.builds(
    LineReport,
    decision=st.booleans(),
    decision_id=u16,
    candidates=st.integers(0, 15),
    stage=st.integers(0, 255),
    error=st.integers(0, 7),
)


@given(st.builds(HltDecReports, u32, u32, u32, st.lists(lines, max_size=20).map(tuple)))
def test_reports_come_back_as_written(reports: HltDecReports) -> None:
    bank = encode_dec_reports(reports)
    assert (bank.type, bank.version, bank.source_id) == (BankType.HLT_DEC_REPORTS, 3, 0xF900)
    assert len(bank.payload) == 4 * (len(reports.lines) + 3)
    assert decode_dec_reports(bank) == reports


@given(st.tuples(u32, u32, u32))
def test_routing_bits_come_back_as_written(words: tuple[int, int, int]) -> None:
    assert decode_routing_bits(encode_routing_bits(words)) == words


def test_as_many_lines_as_fit_a_bank_are_written() -> None:
    many = tuple(LineReport(False, i + 1) for i in range(MAX_LINES + 1))
    encode_bank(encode_dec_reports(HltDecReports(1, 1, 1, many[:-1])))
    with pytest.raises(ReportError):
        encode_dec_reports(HltDecReports(1, 1, 1, many))


@pytest.mark.parametrize(
    "line",
    [
        LineReport(True, 65536),
        LineReport(True, -1),
        LineReport(True, 1, candidates=16),
        LineReport(True, 1, stage=256),
        LineReport(True, 1, error=8),
    ],
)
def test_a_field_that_does_not_fit_is_refused(line: LineReport) -> None:
    with pytest.raises(ReportError):
        encode_dec_reports(HltDecReports(1, 1, 1, (line,)))


@pytest.mark.parametrize(
    ("bank", "reason"),
    [
        (RawBank(LhcbBankType.UT, 3, 0, memoryview(bytes(12))), RejectReason.MISMATCH),
        (RawBank(BankType.HLT_DEC_REPORTS, 2, 0, memoryview(bytes(12))), RejectReason.BAD_VERSION),
        (RawBank(BankType.HLT_DEC_REPORTS, 3, 0, memoryview(bytes(8))), RejectReason.BAD_SIZE),
        (RawBank(BankType.HLT_DEC_REPORTS, 3, 0, memoryview(bytes(14))), RejectReason.BAD_SIZE),
    ],
)
def test_another_bank_is_refused_with_its_reason(bank: RawBank, reason: RejectReason) -> None:
    with pytest.raises(ReportError) as error:
        decode_dec_reports(bank)
    assert error.value.reason is reason


@pytest.mark.parametrize("size", [0, 11, 13, 16])
def test_routing_bits_of_another_size_are_refused(size: int) -> None:
    with pytest.raises(ReportError):
        decode_routing_bits(RawBank(BankType.HLT_ROUTING_BITS, 0, 0, memoryview(bytes(size))))


def test_real_reports_are_read_and_written_back_byte_by_byte(run3_mdf: bytes) -> None:
    records = list(iter_records(run3_mdf))
    banks = [b for record in records for b in record.banks() if b.type == BankType.HLT_DEC_REPORTS]
    reports = [decode_dec_reports(b) for b in banks]
    assert [[line.decision_id for line in r.lines if line.decision] for r in reports] == [[18, 21], [21]]
    assert {(r.tck, r.task_id, len(r.lines)) for r in reports} == {(0x10001120, 1, 27)}
    assert [encode_dec_reports(r, b.source_id) for r, b in zip(reports, banks, strict=True)] == banks


def test_real_routing_bits_are_those_of_the_record_header(run3_mdf: bytes) -> None:
    for record in iter_records(run3_mdf):
        (bank,) = (b for b in record.banks() if b.type == BankType.HLT_ROUTING_BITS)
        assert decode_routing_bits(bank) == record.header.routing_bits[:3]
        assert encode_routing_bits(decode_routing_bits(bank), bank.source_id) == bank
