"""SciFi banks."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import ProtocolError, RawBank, RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.scifi import (
    SciFiHits,
    SciFiWords,
    decode_scifi,
    decode_scifi_words,
    encode_scifi,
    words_of_clusters,
)
from hltnode.protocol.lhcb.errors import SciFiBankError
from tests.protocol import fuzz


def rows_of(columns: SciFiWords | SciFiHits) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(columns, field.name).tolist() for field in fields(columns)), strict=True))


def words_of(rows: list[tuple[int, ...]]) -> SciFiWords:
    return SciFiWords(*np.array(rows, np.uint32).reshape(-1, 5).T)


def bank_of(version: int, *words: tuple[int, int, int, int]) -> RawBank:
    """Words as (link, cell, fraction, edge)."""
    data = [0, 0, *(link << 9 | cell << 2 | fraction << 1 | edge for link, cell, fraction, edge in words)]
    return RawBank(LhcbBankType.FT_CLUSTER, version, 7, memoryview(np.array(data, "<u2").tobytes()))


def hits_of(version: int, *words: tuple[int, int, int, int]) -> list[tuple[int, ...]]:
    """(offset, fraction, pseudo-size) of the hits of one bank."""
    return [row[1:] for row in rows_of(decode_scifi([bank_of(version, *words)]))]


def by_the_rule_of_version_5(words: list[tuple[int, int, int, int]]) -> list[tuple[int, ...]] | None:
    """docs/formats/scifi-banks.md, word by word; None for edges that do not belong to a cluster."""
    hits: list[tuple[int, ...]] = []
    i = 0
    while i < len(words):
        link, cell, fraction, edge = words[i]
        channel = 128 * link + cell
        if edge and i + 1 < len(words) and words[i + 1][3] and words[i + 1][0] == link:
            distance, last_fraction = words[i + 1][1] - cell, words[i + 1][2]
            if distance < 3:
                return None
            if distance > 4:
                hits += [(channel + j, fraction, 0) for j in range(4, distance, 4)]
                hits.append((channel + distance, last_fraction, 0))
            else:
                width = 2 * distance - 1 + last_fraction
                hits.append((channel + (width - 1) // 2 - 1, (width - 1) % 2, width))
            i += 2
        else:
            hits.append((channel, fraction, 4))
            i += 1
    return hits


word = st.tuples(st.integers(0, 3), st.integers(1, 127), st.integers(0, 1), st.integers(0, 1))


@given(st.lists(word, max_size=25, unique_by=lambda w: w[:2]).map(sorted))
def test_version_5_gives_the_hits_of_its_rule(words: list[tuple[int, int, int, int]]) -> None:
    expected = by_the_rule_of_version_5(words)
    if expected is not None:
        assert hits_of(5, *words) == expected
        positions = [2 * channel + fraction for channel, fraction, _ in expected]
        assert positions == sorted(set(positions))
    else:
        with pytest.raises(SciFiBankError) as error:
            hits_of(5, *words)
        assert error.value.reason is RejectReason.MALFORMED


row = st.tuples(st.integers(0, 239), st.integers(0, 127), st.integers(0, 127), st.integers(0, 1), st.integers(0, 1))


@given(st.lists(row, max_size=60, unique_by=lambda w: w[:3]).map(sorted))
def test_words_come_back_as_written(rows: list[tuple[int, ...]]) -> None:
    banks = encode_scifi(words_of(rows))
    assert len(banks) == 240
    assert all(len(bank.payload) % 4 == 0 for bank in banks)
    assert rows_of(decode_scifi_words(banks)) == rows


@pytest.mark.parametrize("width", range(1, 41))
def test_a_cluster_is_found_where_it_was(width: int) -> None:
    first = 30
    middle = first + 0.5 * (width - 1)
    one = np.ones(1, np.uint32)
    words = words_of_clusters(3 * one, 2 * one, first * one, width * one, np.array([middle]))
    hits = decode_scifi(encode_scifi(words))
    positions = hits.offset + 0.5 * hits.fraction - 2 * 128
    if width <= 4:
        assert positions.tolist() == [middle]
        assert hits.pseudo_size.tolist() == [4]
    elif width <= 8:
        assert positions.tolist() == [middle]
        assert hits.pseudo_size.tolist() == [width]
    else:
        # Pieces of four channels from the second channel on, and the rest.
        pieces = [list(range(at, min(at + 4, width))) for at in range(4, width, 4)]
        assert positions.tolist() == [first + np.mean(piece) for piece in pieces]
        assert set(hits.pseudo_size.tolist()) == {0}


def test_a_position_is_rounded_to_half_channels_inside_the_cluster() -> None:
    zero, two = np.zeros(4, np.uint32), np.full(4, 2, np.uint32)
    words = words_of_clusters(
        zero, zero, 10 + 2 * np.arange(4, dtype=np.uint32), two, np.array([10.3, 11.9, 15.2, 17.4])
    )
    assert (words.cell + 0.5 * words.fraction).tolist() == [10.5, 12.0, 15.0, 17.5]


def test_version_4_takes_every_word_as_a_hit() -> None:
    assert hits_of(4, (1, 5, 1, 1), (1, 8, 0, 1), (2, 3, 0, 0)) == [(133, 1, 0), (136, 0, 0), (259, 0, 4)]


def test_version_6_needs_edges_in_order_and_drops_others() -> None:
    assert hits_of(6, (1, 5, 1, 1), (1, 8, 0, 1)) == [(133 + 1, 0, 5)]
    assert hits_of(6, (0, 5, 1, 1), (0, 15, 0, 1)) == [(5, 1, 0), (9, 1, 0), (13 + (4 - 1) // 2 - 1, 1, 0)]
    # wrong fraction, no second edge: the edge and the next word are dropped
    assert hits_of(6, (0, 5, 0, 1), (0, 8, 0, 1), (0, 20, 0, 0)) == [(20, 0, 4)]
    assert hits_of(6, (0, 5, 1, 1), (0, 8, 0, 0), (0, 20, 0, 0)) == [(20, 0, 4)]
    # the last word of a link has no partner
    assert hits_of(6, (0, 5, 1, 1), (1, 8, 0, 0)) == [(5, 1, 0), (136, 0, 4)]


def test_only_one_trailing_zero_word_is_padding() -> None:
    payload = bytes(4) + bytes(4)
    assert len(decode_scifi_words([RawBank(LhcbBankType.FT_CLUSTER, 5, 0, memoryview(payload))]).cell) == 1


@pytest.mark.parametrize(
    ("version", "source", "payload", "reason"),
    [
        (3, 0, bytes(8), RejectReason.BAD_VERSION),
        (7, 0, bytes(8), RejectReason.BAD_VERSION),
        (5, 240, bytes(8), RejectReason.UNKNOWN_SOURCE),
        (5, 0, bytes(2), RejectReason.BAD_SIZE),
        (5, 0, bytes(7), RejectReason.BAD_SIZE),
        (5, 0, bytes(4) + np.array([9 << 2 | 1, 5 << 2 | 1], "<u2").tobytes(), RejectReason.MALFORMED),
        (5, 0, bytes(4) + np.array([1, 1 << 2 | 1], "<u2").tobytes(), RejectReason.MALFORMED),
        (5, 0, bytes(4) + np.array([5 << 2 | 1, 7 << 2 | 1], "<u2").tobytes(), RejectReason.MALFORMED),
        (4, 0, bytes(4) + np.array([9 << 2, 5 << 2], "<u2").tobytes(), RejectReason.MALFORMED),
        (6, 0, bytes(4) + np.array([9 << 2, 9 << 2 | 2], "<u2").tobytes(), RejectReason.MALFORMED),
    ],
)
def test_a_malformed_bank_is_refused(version: int, source: int, payload: bytes, reason: RejectReason) -> None:
    with pytest.raises(SciFiBankError) as error:
        decode_scifi([RawBank(LhcbBankType.FT_CLUSTER, version, source, memoryview(payload))])
    assert error.value.reason is reason


def test_words_that_do_not_fit_are_not_written() -> None:
    for bad in ((240, 0, 0, 0, 0), (0, 128, 0, 0, 0), (0, 0, 128, 0, 0), (0, 0, 0, 2, 0), (0, 0, 0, 0, 2)):
        with pytest.raises(SciFiBankError):
            encode_scifi(words_of([bad]))
    with pytest.raises(SciFiBankError):
        encode_scifi(words_of([(0, 0, cell, 0, 0) for cell in range(32)]))


@pytest.mark.parametrize("version", [4, 5, 6])
def test_damaged_banks_raise_protocol_errors_only(version: int) -> None:
    good = bank_of(version, (0, 5, 1, 1), (0, 15, 0, 1), (1, 5, 0, 0), (1, 9, 1, 1), (1, 12, 0, 1), (1, 60, 1, 1))
    refused = 0
    for data in fuzz.damaged(bytes(good.payload)):
        try:
            decode_scifi([RawBank(LhcbBankType.FT_CLUSTER, version, 7, memoryview(data))])
        except ProtocolError:
            refused += 1
    assert refused > 10


def test_real_words_are_written_byte_for_byte(retina_events: list[list[RawBank]]) -> None:
    counts: dict[int, list[int]] = {4: [], 5: []}
    for event in retina_events:
        banks = [bank for bank in event if bank.type == LhcbBankType.FT_CLUSTER]
        written = encode_scifi(decode_scifi_words(event))
        # Some real headers are not zero; the decoder ignores them.
        assert [bytes(bank.payload[4:]) for bank in written] == [bytes(bank.payload[4:]) for bank in banks]
        for version, found in counts.items():
            found.append(len(decode_scifi([RawBank(b.type, version, b.source_id, b.payload) for b in banks]).bank))
    assert counts[5] == [6488, 2226, 2494, 3112, 3731, 2210, 4297]
    assert counts[4] == [7187, 2442, 2726, 3344, 4078, 2423, 4706]
