"""Selection reports: writing, reading, refusals; real banks of 2025."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import RawBank, RejectReason, iter_records
from hltnode.protocol.errors import ReportError
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.selection_reports import ClassId, HltSelReports, ReportedObject, decode_sel_reports
from tests.protocol.raw_data.report_encoders import encode_sel_reports
from tests.protocol.strategies import f32, u32

numbers = st.lists(f32, max_size=9).map(tuple)


@st.composite
def reports(draw: st.DrawFn) -> HltSelReports:
    """Some objects of each class, with any objects as constituents."""
    classes = draw(st.lists(st.sampled_from(ClassId), max_size=12))
    objects = []
    for class_id in sorted(classes):
        parts = tuple(draw(st.lists(st.integers(0, len(classes) - 1), max_size=4)))
        ids = () if parts else tuple(draw(st.lists(u32, max_size=30)))
        objects.append(ReportedObject(class_id, draw(numbers), ids, parts))
    return HltSelReports(tuple(objects))


@given(reports())
def test_reports_come_back_as_written(written: HltSelReports) -> None:
    bank = encode_sel_reports(written)
    assert (bank.type, bank.version, bank.source_id) == (BankType.HLT_SEL_REPORTS, 12, 0xF900)
    assert len(bank.payload) == 4 * struct.unpack_from("<I", bank.payload)[0]
    assert decode_sel_reports(bank) == written


def test_a_report_without_selections_has_all_five_sub_banks() -> None:
    bank = encode_sel_reports(HltSelReports(()))
    assert struct.unpack_from("<7I", bank.payload) == (15, 0x468D, 11, 12, 13, 14, 15)
    assert decode_sel_reports(bank).selections == {}


def test_a_line_is_known_by_its_decision_id() -> None:
    track = ReportedObject(ClassId.TRACK, (0.0,) * 8, ids=(7,))
    selected = HltSelReports((ReportedObject(ClassId.SELECTION, (12.0,), parts=(1,)), track))
    assert decode_sel_reports(encode_sel_reports(selected)).selections == {12: (1,)}


def test_real_reports_are_read_and_written_back_byte_by_byte(run3_mdf: bytes) -> None:
    banks = [b for record in iter_records(run3_mdf) for b in record.banks() if b.type == BankType.HLT_SEL_REPORTS]
    read = [decode_sel_reports(bank) for bank in banks]
    assert [report.selections for report in read] == [{18: (), 21: ()}, {21: ()}]
    assert [encode_sel_reports(report, bank.source_id) for report, bank in zip(read, banks, strict=True)] == banks


def refusal(payload: bytes, *, bank_type: int = BankType.HLT_SEL_REPORTS, version: int = 12) -> RejectReason:
    with pytest.raises(ReportError) as error:
        decode_sel_reports(RawBank(bank_type, version, 0, memoryview(payload)))
    return error.value.reason


def test_another_bank_is_refused_with_its_reason() -> None:
    good = bytes(encode_sel_reports(HltSelReports(())).payload)
    assert refusal(good, bank_type=LhcbBankType.UT) is RejectReason.MISMATCH
    assert refusal(good, version=10) is RejectReason.BAD_VERSION
    assert refusal(good[:-1]) is RejectReason.BAD_SIZE
    assert refusal(good[:-4]) is RejectReason.BAD_SIZE
    assert refusal(good[:32]) is RejectReason.BAD_SIZE
    assert refusal(good + bytes(4)) is RejectReason.BAD_SIZE


@pytest.mark.parametrize(
    ("word", "value", "what"),
    [
        (1, 0x468D & ~7 | 4, None),
        (1, 3 << 3 | 1, "sub-bank OBJECT_TYPES is missing"),
        (1, 2 | 1 << 3 | 1 << 6, "sub-bank 1"),
        (2, 9, "sub-bank 1 from word 10 to 9"),
        (10, 1 | 3 << 16, "OBJECT_TYPES of 3 words"),
        (11, 9 | 1 << 16, "structures of 9 objects"),
        (13, 0xFFFF, "beyond their sub-bank"),
        (13, 1 << 1 | 5 << 16, "one of 1 objects expected, 5 found"),
        (13, 1 << 1 | 1 | 5 << 16, "one of 0 sequences of hits expected, 5 found"),
        (17, 9, "numbers of objects extend beyond"),
        (19, 1, "ends of 1 sequences|a sequence of hits"),
    ],
)
def test_what_contradicts_itself_is_refused(word: int, value: int, what: str | None) -> None:
    """One selection; its structure has room for one pointer: words 10 types, 12 structure, 14 extra, 16 numbers, 19."""
    words = list(struct.unpack("<20I", encode_sel_reports(HltSelReports((ReportedObject(1, (1.0,)),))).payload))
    words[word] = value
    bank = RawBank(BankType.HLT_SEL_REPORTS, 12, 0, memoryview(struct.pack("<20I", *words)))
    if what is None:
        assert decode_sel_reports(bank).selections == {1: ()}
        return
    with pytest.raises(ReportError, match=what):
        decode_sel_reports(bank)


def test_hits_that_objects_share_cannot_ask_for_any_amount_of_memory() -> None:
    tracks = (ReportedObject(ClassId.TRACK, ids=tuple(range(8000))), *[ReportedObject(ClassId.TRACK, ids=(1,))] * 2)
    payload = bytearray(encode_sel_reports(HltSelReports(tracks)).payload)
    structure = 4 * struct.unpack_from("<10I", payload)[2]
    # All three point to the first sequence.
    struct.pack_into("<6H", payload, structure + 4, *(1 << 1 | 1, 0) * 3)
    with pytest.raises(ReportError, match="more ids of channels"):
        decode_sel_reports(RawBank(BankType.HLT_SEL_REPORTS, 12, 0, memoryview(payload)))


@pytest.mark.parametrize(
    "reported",
    [
        ReportedObject(1, (0.0,) * 256),
        ReportedObject(1, ids=(1,), parts=(0,)),
        ReportedObject(1, ids=tuple(range(17_000))),
        ReportedObject(1, parts=(0x10000,)),
        ReportedObject(0x10000),
        ReportedObject(1, ids=(-1,)),
    ],
)
def test_what_does_not_fit_is_refused(reported: ReportedObject) -> None:
    with pytest.raises(ReportError):
        encode_sel_reports(HltSelReports((reported,)))
