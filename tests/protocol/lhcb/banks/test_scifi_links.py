"""SciFi banks of versions 7 and 8: decoding is the inverse of encoding, and contradictions are refused."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.scifi_links import (
    MAX_WORDS,
    SciFiLinkHits,
    decode_scifi_links,
    encode_scifi_links,
)
from hltnode.protocol.lhcb.errors import SciFiBankError
from hltnode.protocol.raw_data.raw_bank import RawBank

SOURCES = [0x3807, 0x4006, 0x3801]


def hits_of(rows: list[tuple[int, int, int, int, int]]) -> SciFiLinkHits:
    """Source, link, cell, fraction, pseudo-size."""
    return SciFiLinkHits(*np.array(rows, np.uint32).reshape(-1, 5).T)


def sorted_rows(hits: SciFiLinkHits) -> list[list[int]]:
    columns = [getattr(hits, name) for name in SciFiLinkHits.__slots__]
    return sorted(np.stack(columns, axis=1).tolist())


def bank_of(words: list[int], version: int = 8) -> RawBank:
    return RawBank(LhcbBankType.FT_CLUSTER, version, 0x3807, memoryview(np.array([0, 0, *words], "<u2").tobytes()))


@pytest.mark.parametrize("version", [7, 8])
def test_decoding_is_the_inverse_of_encoding(version: int) -> None:
    """Random hits of several events: every cell of a link at most once, wide clusters apart from each other."""
    rng = np.random.default_rng(version)
    rows, events = [], []
    for event in range(3):
        for source in SOURCES[: 2 + event % 2]:
            for link in rng.permutation(24)[:9].tolist():
                for cell in range(4, 120, 8):
                    size = int(rng.choice([0, 4, 4, 4, 5, 6, 7, 8]))
                    fraction = (size - 1) % 2 if size > 4 else int(rng.integers(0, 2))
                    rows.append((source, link, cell, fraction, size))
                    events.append(event)
    hits, event_of_hit = hits_of(rows), np.array(events)
    banks = encode_scifi_links(hits, SOURCES, version, event_of_hit, 3)
    assert [bank.source_id for bank in banks] == SOURCES * 3
    assert {bank.version for bank in banks} == {version}
    for event in range(3):
        found = decode_scifi_links(banks[3 * event : 3 * event + 3])
        expected = [list(row) for row, of_event in zip(rows, events, strict=True) if of_event == event]
        assert sorted_rows(found) == sorted(expected)


def test_the_first_and_the_last_cell_of_a_link_are_written() -> None:
    rows = [(0x3807, 0, 0, 0, 4), (0x3807, 23, 127, 1, 4), (0x3807, 5, 127, 1, 0), (0x3807, 6, 1, 0, 5)]
    for version in (7, 8):
        assert sorted_rows(decode_scifi_links(encode_scifi_links(hits_of(rows), SOURCES, version))) == sorted(
            map(list, rows)
        )
        assert len(decode_scifi_links(encode_scifi_links(hits_of(rows[:1]), SOURCES, version)).cell) == 1
    empty = encode_scifi_links(hits_of([]), SOURCES, 8)
    assert [len(bank.payload) for bank in empty] == [4, 4, 4]
    assert len(decode_scifi_links(empty).cell) == 0


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((0x3809, 0, 0, 0, 4), RejectReason.UNKNOWN_SOURCE),
        ((0x3807, 24, 0, 0, 4), RejectReason.MALFORMED),
        ((0x3807, 0, 128, 0, 4), RejectReason.MALFORMED),
        ((0x3807, 0, 0, 2, 4), RejectReason.MALFORMED),
        ((0x3807, 0, 5, 0, 3), RejectReason.MALFORMED),
        ((0x3807, 0, 5, 0, 9), RejectReason.MALFORMED),
        ((0x3807, 0, 5, 1, 5), RejectReason.MALFORMED),  # the middle of five channels has fraction 0
        ((0x3807, 0, 0, 0, 5), RejectReason.MALFORMED),  # its first piece is before the link
        ((0x3807, 0, 126, 0, 5), RejectReason.MALFORMED),
    ],
)
def test_hits_that_no_bank_can_hold_are_refused(row: tuple[int, int, int, int, int], reason: RejectReason) -> None:
    with pytest.raises(SciFiBankError) as error:
        encode_scifi_links(hits_of([row]), SOURCES, 8)
    assert error.value.reason is reason


def test_other_versions_are_not_written() -> None:
    with pytest.raises(SciFiBankError) as error:
        encode_scifi_links(hits_of([]), SOURCES, 6)
    assert error.value.reason is RejectReason.BAD_VERSION


def test_a_bank_holds_as_many_words_as_its_links_send() -> None:
    rows = [(0x3807, link, cell, 0, 4) for link in range(24) for cell in range(31)]
    (bank, *_) = encode_scifi_links(hits_of(rows), SOURCES, 8)
    assert len(decode_scifi_links([bank]).cell) == MAX_WORDS == 744
    with pytest.raises(SciFiBankError) as error:
        encode_scifi_links(hits_of([*rows, (0x3807, 0, 99, 0, 4)]), SOURCES, 8)
    assert error.value.reason is RejectReason.OVERSIZED
    words = np.frombuffer(bank.payload, "<u2")[2:].tolist()
    assert len(decode_scifi_links([bank_of([*words, 0])]).cell) == 744
    with pytest.raises(SciFiBankError) as error:
        decode_scifi_links([bank_of([*words, 4])])
    assert error.value.reason is RejectReason.OVERSIZED


def test_odd_sizes_and_other_versions_are_refused_and_short_banks_are_empty() -> None:
    for size in (0, 2, 4):
        assert len(decode_scifi_links([bank_of([])._replace(payload=memoryview(bytes(size)))]).cell) == 0
    with pytest.raises(SciFiBankError) as error:
        decode_scifi_links([bank_of([])._replace(payload=memoryview(bytes(5)))])
    assert error.value.reason is RejectReason.BAD_SIZE
    with pytest.raises(SciFiBankError) as error:
        decode_scifi_links([bank_of([], 6)])
    assert error.value.reason is RejectReason.BAD_VERSION


@given(st.binary(max_size=300), st.sampled_from([7, 8]))
def test_any_bytes_are_decoded_or_refused(payload: bytes, version: int) -> None:
    with suppress(SciFiBankError):
        hits = decode_scifi_links([RawBank(LhcbBankType.FT_CLUSTER, version, SOURCES[0], memoryview(payload))])
        assert set(hits.source.tolist()) <= {SOURCES[0]}
        assert hits.pseudo_size.max(initial=0) <= 8
