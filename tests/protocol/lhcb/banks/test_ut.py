"""UT banks."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import ProtocolError, RawBank, RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.ut import (
    BOARDS,
    UtCharges,
    UtHits,
    board_of,
    data_source_id,
    decode_ut,
    decode_ut_charges,
    encode_ut_v3,
    encode_ut_v4,
)
from hltnode.protocol.lhcb.errors import UtBankError
from tests.protocol import fuzz

COLUMNS = [field.name for field in fields(UtHits) if field.name != "bad_boards"]


def hits_of(rows: list[tuple[int, ...]]) -> UtHits:
    return UtHits(*np.array(rows, np.uint32).reshape(-1, 6).T)


def rows_of(hits: UtHits) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(hits, name).tolist() for name in COLUMNS), strict=True))


def charges_of(clusters: list[tuple[int, list[int]]]) -> UtCharges:
    return UtCharges(
        np.array([neighbours for neighbours, _ in clusters], np.int8),
        np.array([len(adc) for _, adc in clusters], np.uint32),
        np.array([value for _, adc in clusters for value in adc], np.uint8),
    )


board, lane = st.sampled_from(BOARDS), st.integers(0, 5)
clusters = st.tuples(
    st.tuples(board, lane, st.integers(1, 512), st.integers(0, 3), st.integers(0, 3), st.just(0)),
    st.tuples(st.integers(-128, 127), st.lists(st.integers(0, 127), min_size=1, max_size=6)),
)
strips = st.tuples(board, lane, st.integers(0, 2047), st.just(0), st.just(0), st.integers(0, 31))


@given(st.lists(clusters, max_size=40))
def test_clusters_and_their_charges_come_back_as_written(
    drawn: list[tuple[tuple[int, ...], tuple[int, list[int]]]],
) -> None:
    drawn = sorted(drawn, key=lambda pair: pair[0][0])
    charges = charges_of([charge for _, charge in drawn])
    banks = encode_ut_v3(hits_of([hit for hit, _ in drawn]), charges)
    assert [bank.source_id for bank in banks] == list(BOARDS)
    assert rows_of(decode_ut(banks)) == [hit for hit, _ in drawn]
    decoded = decode_ut_charges(banks)
    for name in ("neighbour_sum", "n_strips", "adc"):
        assert getattr(decoded, name).tolist() == getattr(charges, name).tolist()


@given(st.lists(strips, max_size=60))
def test_strips_come_back_lane_by_lane(drawn: list[tuple[int, ...]]) -> None:
    drawn = sorted(drawn, key=lambda hit: hit[:2])
    banks = encode_ut_v4(hits_of(drawn))
    assert [board_of(bank) for bank in banks] == list(BOARDS)
    assert rows_of(decode_ut(banks)) == drawn


def test_the_bits_of_a_cluster_word_are_those_of_the_format() -> None:
    payload = (1).to_bytes(4, "little") + (1 << 15 | (3 * 512 + 7) << 2 | 2).to_bytes(2, "little")
    assert rows_of(decode_ut([RawBank(LhcbBankType.UT, 3, 17, memoryview(payload))])) == [(17, 3, 8, 2, 2, 0)]


def test_lanes_of_a_line_are_stored_last_first() -> None:
    line = [0] * 12
    line[2 * (5 - 0)], line[2 * (5 - 0) + 1], line[2 * (5 - 5)] = 9 << 5 | 4, 10 << 5, 500 << 5 | 31
    payload = bytes([0, 1, 0, 0, 2, 0, 0, 0]) + np.array(line, "<u2").tobytes()
    bank = RawBank(LhcbBankType.UT, 4, 5 << 11 | 1 << 10 | 3, memoryview(payload))
    assert rows_of(decode_ut([bank])) == [(5, 0, 9, 0, 0, 4), (5, 0, 10, 0, 0, 0), (5, 5, 500, 0, 0, 31)]


def test_a_board_with_a_bad_lane_gives_no_hits_and_is_listed() -> None:
    payload = bytes([255, 0, 0, 0, 1, 0, 0, 0]) + bytes(24)
    hits = decode_ut([RawBank(LhcbBankType.UT, 4, data_source_id(66), memoryview(payload))])
    assert rows_of(hits) == []
    assert hits.bad_boards == (66,)


def test_a_data_bank_without_a_line_holds_no_hits() -> None:
    bank = RawBank(LhcbBankType.UT, 4, data_source_id(0), memoryview(bytes([9] * 8)))
    assert rows_of(decode_ut([bank])) == []


@pytest.mark.parametrize(
    ("version", "source", "payload", "reason"),
    [
        (2, 0, bytes(4), RejectReason.BAD_VERSION),
        (3, 240, bytes(4), RejectReason.UNKNOWN_SOURCE),
        (4, 5 << 11, bytes(32), RejectReason.UNKNOWN_SOURCE),
        (3, 0, b"\1\0", RejectReason.TRUNCATED),
        (3, 0, b"\2\0\0\0\1\0", RejectReason.TRUNCATED),
        (3, 0, b"\1\0\0\0\xff\xff", RejectReason.MALFORMED),
        (4, 0, bytes(7), RejectReason.BAD_SIZE),
        (4, 0, bytes([5] * 8 + [0] * 24), RejectReason.TRUNCATED),
    ],
)
def test_a_malformed_bank_is_refused(version: int, source: int, payload: bytes, reason: RejectReason) -> None:
    with pytest.raises(UtBankError) as error:
        decode_ut([RawBank(LhcbBankType.UT, version, source, memoryview(payload))])
    assert error.value.reason is reason


@pytest.mark.parametrize("tail", [b"\0\0", b"\0\0\1", b"\0\0\1\5", b"\0\0\1\x85\0"])
def test_charges_that_do_not_fill_the_bank_are_refused(tail: bytes) -> None:
    payload = b"\1\0\0\0\0\0" + tail
    with pytest.raises(UtBankError):
        decode_ut_charges([RawBank(LhcbBankType.UT, 3, 0, memoryview(payload))])


def test_hits_that_do_not_fit_are_not_written() -> None:
    charges = charges_of([(0, [5])])
    for row in ((42, 0, 1, 0, 0, 0), (0, 6, 1, 0, 0, 0), (0, 0, 0, 0, 0, 0), (0, 0, 513, 0, 0, 0), (0, 0, 1, 4, 0, 0)):
        with pytest.raises(UtBankError):
            encode_ut_v3(hits_of([row]), charges)
    with pytest.raises(UtBankError):
        encode_ut_v3(hits_of([(0, 0, 1, 0, 0, 0)]), charges_of([(0, [128])]))
    with pytest.raises(UtBankError):
        encode_ut_v3(hits_of([(0, 0, 1, 0, 0, 0)]), charges_of([]))
    with pytest.raises(UtBankError):
        encode_ut_v4(hits_of([(0, 0, 1, 0, 0, 0)] * 255))


@pytest.mark.parametrize("version", [3, 4])
def test_damaged_banks_raise_protocol_errors_only(version: int) -> None:
    hits = hits_of([(0, i % 6, 1 + 60 * i % 512, 0, 0, i % 32 if version == 4 else 0) for i in range(9)])
    banks = encode_ut_v4(hits) if version == 4 else encode_ut_v3(hits, charges_of([(1, [5, 6])] * 9))
    refused = 0
    for data in fuzz.damaged(bytes(banks[0].payload)):
        bank = RawBank(LhcbBankType.UT, version, banks[0].source_id, memoryview(data))
        for decode in (decode_ut, decode_ut_charges):
            try:
                decode([bank])
            except ProtocolError:
                refused += 1
    assert refused > 100


def test_real_banks_are_written_byte_for_byte(retina_events: list[list[RawBank]]) -> None:
    counts = []
    for event in retina_events:
        banks = [bank for bank in event if bank.type == LhcbBankType.UT]
        hits = decode_ut(event)
        counts.append(len(hits.board))
        written = encode_ut_v3(hits, decode_ut_charges(event))
        assert [(b.source_id, bytes(b.payload)) for b in written] == [(b.source_id, bytes(b.payload)) for b in banks]
    assert counts == [2108, 780, 835, 969, 1170, 433, 1707]
