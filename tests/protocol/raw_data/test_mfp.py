"""Multi-fragment packets."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given

from hltnode.protocol import NO_BANK, Mfp, RawBank, RejectReason, encode_mfp, events_of_mfps
from hltnode.protocol.errors import MfpError
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from tests.protocol.grouped_banks import group_into_mfps
from tests.protocol.strategies import fragment_lists, mep_inputs


def mfp_of(*fragments: bytes, event_id: int = 1, source_id: int = 4097, align: int = 3) -> bytes:
    return encode_mfp(
        source_id=source_id, event_id=event_id, version=2, types=[63] * len(fragments), fragments=fragments, align=align
    )


def test_the_layout_is_that_of_the_format() -> None:
    packet = mfp_of(b"abc", b"", b"defghijkl", event_id=7)
    expected = struct.pack("<HHIQHBB", 0x40CE, 3, 20 + 4 + 8 + 8 + 16, 7, 4097, 3, 2)
    expected += bytes((63, 63, 63, 0)) + struct.pack("<4H", 3, 0, 9, 0)
    expected += b"abc".ljust(8, b"\0") + b"defghijkl".ljust(16, b"\0")
    assert packet == expected


@pytest.mark.parametrize("align", range(2, 9))
@given(content=fragment_lists())
def test_fragments_come_back_as_written(align: int, content: tuple[bytes, list[bytes]]) -> None:
    types, fragments = content
    packet = encode_mfp(source_id=5, event_id=9, version=4, types=types, fragments=fragments, align=align)
    mfp = Mfp.parse(packet)
    assert (mfp.source_id, mfp.event_id, mfp.version, mfp.align) == (5, 9, 4, align)
    assert (mfp.n_fragments, mfp.packet_size) == (len(fragments), len(packet))
    assert mfp.types.tolist() == list(types)
    assert mfp.sizes.tolist() == [len(fragment) for fragment in fragments]
    assert [bytes(mfp.fragment(i)) for i in range(mfp.n_fragments)] == fragments
    assert [b is None for b in mfp.banks()] == [bank_type == NO_BANK for bank_type in types]


def test_offsets_start_after_the_arrays_and_step_by_the_padded_sizes() -> None:
    mfp = Mfp.parse(mfp_of(b"a", b"bc", b"d" * 9))
    assert mfp.offsets.tolist() == [32, 40, 48]
    assert mfp.offsets.dtype == np.uint32


def test_a_packet_holds_65535_fragments_and_no_more() -> None:
    assert Mfp.parse(mfp_of(*[b""] * 0xFFFF)).n_fragments == 0xFFFF
    with pytest.raises(MfpError):
        mfp_of(*[b""] * 0x10000)


def test_a_fragment_of_64_kib_is_refused() -> None:
    assert Mfp.parse(mfp_of(bytes(0xFFFF))).sizes.tolist() == [0xFFFF]
    with pytest.raises(MfpError) as error:
        mfp_of(bytes(0x10000))
    assert error.value.reason is RejectReason.OVERSIZED


def test_the_last_event_id_is_valid_and_one_beyond_is_refused() -> None:
    assert Mfp.parse(mfp_of(b"", b"", event_id=2**64 - 2)).event_id == 2**64 - 2
    with pytest.raises(MfpError):
        Mfp.parse(mfp_of(b"", b"", event_id=2**64 - 1))


def changed(packet: bytes, at: int, layout: str, value: int) -> bytes:
    damaged = bytearray(packet)
    struct.pack_into(layout, damaged, at, value)
    return bytes(damaged)


GOOD = mfp_of(b"abc", b"defgh")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", RejectReason.TRUNCATED),
        (GOOD[:19], RejectReason.TRUNCATED),
        (GOOD[:-1], RejectReason.TRUNCATED),
        (GOOD + b"\0", RejectReason.BAD_SIZE),
        (changed(GOOD, 0, "<H", 0x40CF), RejectReason.BAD_MAGIC),
        (changed(GOOD, 2, "<H", 0), RejectReason.BAD_SIZE),
        (changed(GOOD, 2, "<H", 1), RejectReason.BAD_SIZE),
        (changed(GOOD, 2, "<H", 0xFFFF), RejectReason.BAD_SIZE),
        (changed(GOOD, 4, "<I", 0), RejectReason.BAD_SIZE),
        (changed(GOOD, 4, "<I", 0xFFFFFFFF), RejectReason.TRUNCATED),
        (changed(GOOD, 18, "<B", 0), RejectReason.MALFORMED),
        (changed(GOOD, 18, "<B", 255), RejectReason.MALFORMED),
        (changed(GOOD, 20, "<B", NO_BANK), RejectReason.MALFORMED),
        (changed(GOOD, 24, "<H", 9), RejectReason.BAD_SIZE),
        (changed(GOOD, 26, "<H", 0xFFFF), RejectReason.BAD_SIZE),
    ],
)
def test_a_damaged_packet_is_refused_with_its_reason(data: bytes, reason: RejectReason) -> None:
    with pytest.raises(MfpError) as error:
        Mfp.parse(data)
    assert error.value.reason is reason


@given(mep_inputs())
def test_events_of_mfps_take_fragment_i_of_every_source(packets: list[bytes]) -> None:
    mfps = [Mfp.parse(packet) for packet in packets]
    events = events_of_mfps(mfps)
    assert len(events) == mfps[0].n_fragments
    for i, banks in enumerate(events):
        assert [b.source_id for b in banks] == [mfp.source_id for mfp in mfps]
        assert [b.payload for b in banks] == [mfp.fragment(i) for mfp in mfps]


def test_mfps_of_different_events_are_refused() -> None:
    with pytest.raises(MfpError) as error:
        events_of_mfps([Mfp.parse(mfp_of(b"")), Mfp.parse(mfp_of(b"", event_id=2))])
    assert error.value.reason is RejectReason.MISMATCH


def by_number(bank: RawBank) -> int | None:
    return bank.source_id


def test_two_banks_of_one_source_in_an_event_are_refused() -> None:
    bank = RawBank(LhcbBankType.UT, 3, 1, memoryview(b""))
    with pytest.raises(MfpError) as error:
        group_into_mfps([[bank, bank]], 0, by_number)
    assert error.value.reason is RejectReason.DUPLICATE


def test_two_banks_of_one_source_in_an_event_become_an_error_bank_where_the_readout_has_one() -> None:
    banks = [RawBank(LhcbBankType.UT, 3, 1, memoryview(text)) for text in (b"first", b"second")]
    (packet,) = group_into_mfps([banks[:1], banks], 0, by_number, error_type=95).values()
    assert [(bank.type, bytes(bank.payload)) for bank in Mfp.parse(packet).banks() if bank is not None] == [
        (LhcbBankType.UT, b"first"), (95, b"first"),
    ]  # fmt: skip


def test_two_bank_versions_of_one_source_are_refused() -> None:
    events = [[RawBank(LhcbBankType.UT, version, 1, memoryview(b""))] for version in (3, 4)]
    with pytest.raises(MfpError) as error:
        group_into_mfps(events, 0, by_number)
    assert error.value.reason is RejectReason.MISMATCH


def test_an_event_without_a_bank_has_a_fragment_of_type_no_bank() -> None:
    events = [[], [RawBank(LhcbBankType.UT, 3, 1, memoryview(b"ab"))], []]
    (packet,) = group_into_mfps(events, 100, by_number).values()
    mfp = Mfp.parse(packet)
    assert mfp.types.tolist() == [NO_BANK, LhcbBankType.UT, NO_BANK]
    assert mfp.sizes.tolist() == [0, 2, 0]
    assert [len(banks) for banks in events_of_mfps([mfp])] == [0, 1, 0]


def test_banks_are_grouped_under_the_source_they_are_given_and_left_out_without_one() -> None:
    events = [[RawBank(9, 3, number, memoryview(bytes([number]))) for number in (3, 1, 2)]] * 2
    packets = group_into_mfps(events, 7, lambda bank: None if bank.source_id == 1 else 40 - bank.source_id)
    assert list(packets) == [37, 38]
    mfps = [Mfp.parse(packet) for packet in packets.values()]
    assert [(mfp.source_id, mfp.event_id, mfp.n_fragments) for mfp in mfps] == [(37, 7, 2), (38, 7, 2)]
    assert [bytes(mfp.fragment(1)) for mfp in mfps] == [b"\3", b"\2"]
