"""Banks of the electromagnetic calorimeter."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import RawBank, RejectReason, iter_records
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import EcalVersion
from hltnode.protocol.lhcb.banks.ecal import (
    FIBRE_OFF,
    MAX_ADC,
    MIN_ADC,
    VOID_ADC,
    EcalBoards,
    EcalCards,
    decode_ecal_boards,
    decode_ecal_cards,
    encode_ecal_boards,
    encode_ecal_cards,
)
from hltnode.protocol.lhcb.errors import EcalBankError

MDF = "data/lhcb-minbias-mdf/minbias_1f258735_retina3_mc2_ev6001_6007.mdf"


def random_cards(seed: int, n: int) -> EcalCards:
    rng = np.random.default_rng(seed)
    is_long = rng.random((n, 32)) < rng.random((n, 1))
    adc = np.where(is_long, rng.integers(MIN_ADC, MAX_ADC + 1, (n, 32)), rng.integers(-8, 8, (n, 32)))
    return EcalCards(
        source=np.sort(rng.integers(0, 28, n)).astype(np.uint32),
        code=rng.integers(0, 512, n).astype(np.uint32),
        adc=adc.astype(np.int16),
        is_long=is_long,
        trigger=tuple(rng.bytes(int(size)) for size in rng.integers(0, 128, n)),
    )


def assert_same_cards(found: EcalCards, expected: EcalCards) -> None:
    for name in ("source", "code", "adc", "is_long"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.trigger == expected.trigger


def random_boards(seed: int, n_sources: int) -> EcalBoards:
    rng = np.random.default_rng(seed)
    n_of_source = rng.integers(1, 4, n_sources)
    place = np.concatenate([np.arange(n) for n in n_of_source]) if n_sources else np.empty(0, int)
    adc = rng.integers(MIN_ADC, MAX_ADC + 1, (len(place), 4, 8))
    adc[rng.random((len(place), 4)) < 0.2] = VOID_ADC
    source = np.repeat(np.sort(rng.choice(2048, n_sources, replace=False)), n_of_source)
    return EcalBoards(source.astype(np.uint32), place.astype(np.uint32), adc.reshape(-1, 32).astype(np.int16))


@given(st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_cards_come_back_as_written(seed: int, n: int) -> None:
    cards = random_cards(seed, n)
    banks = encode_ecal_cards(cards)
    assert [bank.source_id for bank in banks] == list(range(28))
    assert_same_cards(decode_ecal_cards(banks), cards)


@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.sampled_from([EcalVersion.BIG_ENDIAN, EcalVersion(5)]))
def test_boards_come_back_as_written(seed: int, n_sources: int, version: EcalVersion) -> None:
    boards = random_boards(seed, n_sources)
    found = decode_ecal_boards(encode_ecal_boards(boards, version))
    for name in ("source", "place", "adc"):
        np.testing.assert_array_equal(getattr(found, name), getattr(boards, name))


def test_banks_of_several_events_follow_one_another() -> None:
    cards, boards = random_cards(1, 20), random_boards(2, 5)
    event = np.random.default_rng(3).integers(0, 3, 20)
    banks = encode_ecal_cards(cards, event, n_events=3)
    for number in range(3):
        own = event == number
        found = decode_ecal_cards(banks[28 * number : 28 * (number + 1)])
        np.testing.assert_array_equal(found.adc, cards.adc[own])
        np.testing.assert_array_equal(found.code, cards.code[own])
    twice = EcalBoards(*(np.concatenate([column] * 2) for column in (boards.source, boards.place, boards.adc)))
    n = len(boards.place)
    banks = encode_ecal_boards(twice, EcalVersion.LITTLE_ENDIAN, np.repeat([0, 1], n), n_events=2)
    assert [bank.payload.tobytes() for bank in banks[:5]] == [bank.payload.tobytes() for bank in banks[5:]]


def test_the_real_banks_are_written_as_they_were_read(shared: Path) -> None:
    for record in iter_records((shared / MDF).read_bytes()):
        banks = [bank for bank in record.banks() if bank.type == LhcbBankType.ECAL_PACKED]
        cards = decode_ecal_cards(banks)
        assert (len(banks), len(cards.code), len(np.unique(cards.code))) == (28, 188, 188)
        written = encode_ecal_cards(cards)
        assert [bytes(bank.payload) for bank in written] == [bytes(bank.payload) for bank in banks]
        assert [bank[:3] for bank in written] == [bank[:3] for bank in banks]


def test_the_bits_of_a_card_are_those_of_the_format() -> None:
    """Channel 7 has 12 bits, which begin in bit 28 of a word and end in the next one."""
    header = 5 | (4 * 6) << 7 | 130 << 14
    stream = [0x78888888 + 0x80000000 - 0x10000000, 0xF8888888, 0x88888888, 0x88888888, 0x00000088]
    words = np.array([header, 0x04030201, 5, 1 << 7, *stream[:1], *stream[1:]], "<u4")
    words[4] = 0x08888888 | 0x3 << 28
    words[5] = 0x88888812
    cards = decode_ecal_cards([RawBank(LhcbBankType.ECAL_PACKED, 2, 9, memoryview(words.tobytes()))])
    assert (cards.source.tolist(), cards.code.tolist(), cards.trigger) == ([9], [130], (b"\1\2\3\4\5",))
    assert cards.adc[0, :7].tolist() == [0] * 7
    assert cards.adc[0, 7] == 0x123 - 256
    assert cards.adc[0, 8:16].tolist() == [0, 0, 0, 0, 0, 0, 0, 0]


def test_the_bits_of_a_board_are_those_of_the_format() -> None:
    fibre = [0x12345678, 0x9ABCDEF0, 0x13579BDF]
    words = [7, 7, 7, *fibre, *FIBRE_OFF, *[0x10010010, 0x01001001, 0x00100100] * 2]
    expected = [value - 256 for value in (0x123, 0x456, 0x789, 0xABC, 0xDEF, 0x013, 0x579, 0xBDF)]
    for version, dtype in ((EcalVersion.BIG_ENDIAN, ">u4"), (EcalVersion.LITTLE_ENDIAN, "<u4")):
        content = memoryview(np.array(words, dtype).tobytes())
        boards = decode_ecal_boards([RawBank(LhcbBankType.CALO, version, 11 << 11 | 3, content)])
        assert (boards.source.tolist(), boards.place.tolist()) == ([3], [0])
        assert boards.adc[0].tolist() == [*expected, *[VOID_ADC] * 8, *[0] * 16]


def bank(words: list[int], bank_type: int = 21, version: int = 2) -> RawBank:
    return RawBank(bank_type, version, 1, memoryview(np.array(words, "<u4").tobytes()))


SIZE = 4 * 5 << 7


@pytest.mark.parametrize(
    ("damaged", "decode", "reason"),
    [
        (bank([SIZE, 0, 0, 0, 0]), decode_ecal_cards, RejectReason.TRUNCATED),
        (bank([SIZE | 5, 0]), decode_ecal_cards, RejectReason.TRUNCATED),
        (bank([SIZE, 1, 0, 0, 0, 0]), decode_ecal_cards, RejectReason.TRUNCATED),
        (bank([SIZE + 128, 0, 0, 0, 0, 0]), decode_ecal_cards, RejectReason.BAD_SIZE),
        (RawBank(21, 2, 1, memoryview(bytes(3))), decode_ecal_cards, RejectReason.BAD_SIZE),
        (bank([], version=3), decode_ecal_cards, RejectReason.BAD_VERSION),
        (bank([0] * 14, 77, 4), decode_ecal_boards, RejectReason.BAD_SIZE),
        (bank([0] * 51, 77, 5), decode_ecal_boards, RejectReason.BAD_SIZE),
        (bank([], 77, 4), decode_ecal_boards, RejectReason.BAD_SIZE),
        (bank([0] * 15, 77, 6), decode_ecal_boards, RejectReason.BAD_VERSION),
    ],
)
def test_damaged_banks_are_refused(
    damaged: RawBank, decode: Callable[[list[RawBank]], object], reason: RejectReason
) -> None:
    with pytest.raises(EcalBankError) as error:
        decode([damaged])
    assert error.value.reason is reason


@given(st.binary(max_size=200), st.sampled_from([(21, 2), (77, 4), (77, 5)]))
def test_any_bytes_are_decoded_or_refused(payload: bytes, kind: tuple[int, int]) -> None:
    for decode in (decode_ecal_cards, decode_ecal_boards):
        with suppress(EcalBankError):
            decode([RawBank(*kind, 1, memoryview(payload))])


def test_values_that_do_not_fit_are_refused() -> None:
    cards, boards = random_cards(4, 1), random_boards(5, 1)
    for changed in (
        EcalCards(cards.source, cards.code, np.full((1, 32), MAX_ADC + 1, np.int16), cards.is_long, cards.trigger),
        EcalCards(cards.source, cards.code + np.uint32(512), cards.adc, cards.is_long, cards.trigger),
        EcalCards(cards.source + np.uint32(28), cards.code, cards.adc, cards.is_long, cards.trigger),
        EcalCards(cards.source, cards.code, cards.adc, cards.is_long, (bytes(128),)),
    ):
        with pytest.raises(EcalBankError):
            encode_ecal_cards(changed)
    for source, place, adc in (
        (boards.source[:1], boards.place[:1], np.full((1, 32), MIN_ADC - 1, np.int16)),
        (np.zeros(4, np.uint32), np.arange(4, dtype=np.uint32), np.zeros((4, 32), np.int16)),
    ):
        with pytest.raises(EcalBankError):
            encode_ecal_boards(EcalBoards(source, place, adc), EcalVersion.BIG_ENDIAN)
