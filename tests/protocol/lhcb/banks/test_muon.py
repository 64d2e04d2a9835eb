"""Muon banks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import ProtocolError, RawBank, RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.muon import (
    MuonDigits,
    MuonPads,
    batch_of,
    decode_muon,
    decode_muon_pads,
    encode_muon,
)
from hltnode.protocol.lhcb.errors import MuonBankError
from tests.protocol import fuzz


def digits_of(rows: Sequence[tuple[int, ...]]) -> MuonDigits:
    return MuonDigits(*np.array(rows, np.uint32).reshape(-1, 4).T)


def pads_of(rows: Sequence[tuple[int, ...]]) -> MuonPads:
    return MuonPads(*np.array(rows, np.uint32).reshape(-1, 2).T)


def rows_of(digits: MuonDigits) -> list[tuple[int, ...]]:
    columns = (digits.bank, digits.batch, digits.address, digits.time)
    return list(zip(*(column.tolist() for column in columns), strict=True))


digit = st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 4095), st.integers(0, 15))
pad = st.tuples(st.integers(0, 9), st.integers(0, 0xFFFF))


@given(
    st.lists(digit, max_size=60, unique_by=lambda row: row[:3]).map(sorted),
    st.lists(pad, max_size=30).map(lambda rows: sorted(rows, key=lambda row: row[0])),
)
def test_digits_and_pads_come_back_as_written(digits: list[tuple[int, ...]], pads: list[tuple[int, ...]]) -> None:
    banks = encode_muon(digits_of(digits), pads_of(pads))
    assert len(banks) == 10
    assert all(len(bank.payload) % 4 == 0 for bank in banks)
    assert rows_of(decode_muon(banks)) == digits
    decoded = decode_muon_pads(banks)
    assert list(zip(decoded.bank.tolist(), decoded.address.tolist(), strict=True)) == pads


def test_the_bits_of_a_digit_are_those_of_the_format() -> None:
    payload = np.array([1, 0, 77, 0, 0, 1, 12 << 12 | 294, 0, 0, 0], "<u2").tobytes()
    bank = RawBank(LhcbBankType.MUON, 2, 4, memoryview(payload))
    assert rows_of(decode_muon([bank])) == [(4, 1, 294, 12)]
    assert decode_muon_pads([bank]).address.tolist() == [77]


def test_a_batch_is_a_quarter_of_the_boards_or_of_ten_three_two_three_and_two() -> None:
    bank, address = np.array([0, 0, 5, 9, 9], np.uint32), np.array([383, 384, 3071, 480, 4000], np.uint32)
    assert batch_of(bank, address).tolist() == [0, 1, 3, 0, 3]
    of_ten = batch_of(np.full(10, 6, np.uint32), np.arange(0, 1920, 192, dtype=np.uint32))
    assert of_ten.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("version", "source", "payload", "reason"),
    [
        (1, 0, bytes(12), RejectReason.BAD_VERSION),
        (2, 10, bytes(12), RejectReason.UNKNOWN_SOURCE),
        (2, 0, bytes(11), RejectReason.BAD_SIZE),
        (2, 0, b"", RejectReason.TRUNCATED),
        (2, 0, b"\xff\xff" * 6, RejectReason.TRUNCATED),
        (2, 0, bytes(10), RejectReason.TRUNCATED),
        (2, 0, bytes(16), RejectReason.BAD_SIZE),
        (2, 0, bytes(4) + b"\3\0" + bytes(6), RejectReason.TRUNCATED),
    ],
)
def test_a_malformed_bank_is_refused(version: int, source: int, payload: bytes, reason: RejectReason) -> None:
    with pytest.raises(MuonBankError) as error:
        decode_muon([RawBank(LhcbBankType.MUON, version, source, memoryview(payload))])
    assert error.value.reason is reason


def test_digits_that_do_not_fit_are_not_written() -> None:
    for bad in ((10, 0, 0, 0), (0, 4, 0, 0), (0, 0, 4096, 0), (0, 0, 0, 16)):
        with pytest.raises(MuonBankError):
            encode_muon(digits_of([bad]), pads_of([]))
    with pytest.raises(MuonBankError):
        encode_muon(digits_of([]), pads_of([(0, 1 << 16)]))
    with pytest.raises(MuonBankError, match="more than 65535 pads"):
        encode_muon(digits_of([]), pads_of([(0, 1)] * (1 << 16)))


def test_damaged_banks_raise_protocol_errors_only() -> None:
    rows = [(0, batch, 10 * i, i) for batch in range(4) for i in range(5)]
    good = encode_muon(digits_of(rows), pads_of([(0, 3), (0, 4), (0, 5)]))[0]
    refused = 0
    for data in fuzz.damaged(bytes(good.payload)):
        bank = RawBank(LhcbBankType.MUON, 2, 0, memoryview(data))
        for decode in (decode_muon, decode_muon_pads):
            try:
                decode([bank])
            except ProtocolError:
                refused += 1
    assert refused > 100


def test_real_banks_are_written_byte_for_byte(retina_events: list[list[RawBank]]) -> None:
    for event in retina_events:
        banks = [bank for bank in event if bank.type == LhcbBankType.MUON]
        written = encode_muon(decode_muon(event), decode_muon_pads(event))
        assert [bytes(bank.payload) for bank in written] == [bytes(bank.payload) for bank in banks]
