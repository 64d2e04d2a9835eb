"""Banks of the electromagnetic calorimeter (docs/formats/ecal-banks.md).

EcalPacked (type 21) lists cards with their codes; a value that is nearly zero takes 4 bits, any other 12 bits. Calo
(type 77) holds the boards of a source in the order of its slots, with 12 bits for each value. The geometry tells the
cells of a card and the boards of a source.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import ECAL_VERSIONS, EcalVersion
from hltnode.protocol.lhcb.errors import EcalBankError
from hltnode.protocol.raw_data.raw_bank import RawBank, cut_into_banks
from hltnode.protocol.raw_data.source_id import number_of

N_CHANNELS = 32
MAX_CODE = (1 << 9) - 1
MAX_TRIGGER_BYTES = 127
SHORT_PEDESTAL = 8
"""Added to an ADC value of -8 to 7 to store it in 4 bits."""
LONG_PEDESTAL = 256
"""Added to an ADC value of -256 to 3839 to store it in 12 bits."""
MIN_ADC, MAX_ADC = -LONG_PEDESTAL, (1 << 12) - 1 - LONG_PEDESTAL
SLOTS = 3
"""Boards of a source."""
SKIPPED_WORDS = 3
BOARD_WORDS = 12
FIBRES_OF_BOARD = 4
FIBRE_OFF = (0xFFF000FF, 0xF000FFF0, 0x00FFF000)
"""The three words of a fibre without data."""
VOID_ADC = -32768
"""Value of a channel whose fibre is off."""

_U32 = np.dtype("<u4")
_CHANNELS_OF_FIBRE = N_CHANNELS // FIBRES_OF_BOARD


@dataclass(frozen=True, slots=True, eq=False)
class EcalCards:
    """Cards of EcalPacked banks, in their order.

    `source` u32[n]: number of the bank. `code` u32[n]: 0 to 511. `adc` i16[n, 32]: ADC values, pedestal subtracted.
    `is_long` bool[n, 32]: values stored in 12 bits. `trigger` (n byte strings): data for the former level-0 trigger.
    """

    source: NDArray[np.uint32]
    code: NDArray[np.uint32]
    adc: NDArray[np.int16]
    is_long: NDArray[np.bool_]
    trigger: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, eq=False)
class EcalBoards:
    """Boards of Calo banks, in their order.

    `source` u32[n]: number of the bank. `place` u32[n]: number of the board in its bank. `adc` i16[n, 32]: ADC values,
    VOID_ADC for channels of a fibre that is off.
    """

    source: NDArray[np.uint32]
    place: NDArray[np.uint32]
    adc: NDArray[np.int16]


def decode_ecal_cards(banks: Iterable[RawBank]) -> EcalCards:
    """The cards of EcalPacked banks; banks of other types are skipped. Raises EcalBankError."""
    sources: list[int] = []
    codes: list[int] = []
    patterns: list[int] = []
    streams: list[NDArray[np.uint32]] = []
    trigger: list[bytes] = []
    for bank in banks:
        if bank.type != LhcbBankType.ECAL_PACKED:
            continue
        words = _words_of(bank)
        at = 0
        while at < len(words):
            header = int(words[at])
            n_bytes = header & 0x7F
            pattern_at = at + 1 + (n_bytes + 3) // 4
            pattern = int(words[pattern_at]) if pattern_at < len(words) else 0
            n_words = _stream_words(pattern)
            if pattern_at + 1 + n_words > len(words):
                raise EcalBankError(RejectReason.TRUNCATED, f"{_where(bank)}: a card at word {at} of {len(words)}")
            if header >> 7 & 0x7F != 4 * (1 + n_words):
                raise EcalBankError(
                    RejectReason.BAD_SIZE,
                    f"{_where(bank)}: a card of {header >> 7 & 0x7F} bytes, expected {4 * (1 + n_words)}",
                )
            sources.append(number_of(bank.source_id))
            codes.append(header >> 14 & MAX_CODE)
            patterns.append(pattern)
            trigger.append(words[at + 1 : pattern_at].tobytes()[:n_bytes])
            streams.append(words[pattern_at + 1 : pattern_at + 1 + n_words])
            at = pattern_at + 1 + n_words
    is_long = (np.array(patterns, np.uint32)[:, None] >> np.arange(N_CHANNELS, dtype=np.uint32) & np.uint32(1)) != 0
    n_words_of = np.array([len(stream) for stream in streams], np.int64)
    # One more word, so that a value at the end has a next word.
    stream = np.concatenate([*streams, np.zeros(1, np.uint32)]).astype(np.uint64)
    bits = np.where(is_long, 12, 4)
    at_bit = 32 * (np.cumsum(n_words_of) - n_words_of)[:, None] + np.cumsum(bits, axis=1) - bits
    word, shift = at_bit // 32, (at_bit % 32).astype(np.uint64)
    value = (stream[word] | stream[np.minimum(word + 1, len(stream) - 1)] << np.uint64(32)) >> shift
    adc = np.where(
        is_long,
        (value & np.uint64(0xFFF)).astype(np.int64) - LONG_PEDESTAL,
        (value & np.uint64(0xF)).astype(np.int64) - SHORT_PEDESTAL,
    )
    return EcalCards(
        np.array(sources, np.uint32), np.array(codes, np.uint32), adc.astype(np.int16), is_long, tuple(trigger)
    )


def encode_ecal_cards(
    cards: EcalCards, event: NDArray[np.int64] | None = None, n_events: int = 1, n_sources: int = 28
) -> list[RawBank]:
    """Version 2 banks of sources 0 to n_sources - 1 for each event, empty ones included; cards keep their order.

    For several events, `event` is the event number (0, 1, ...) of each card; the banks of the events follow one
    another. `is_long` selects 12 bits; values outside -8 to 7 take 12 bits in any case. Raises EcalBankError for values
    that do not fit.
    """
    _check_adc(cards.adc)
    for name, values, end in (("source", cards.source, n_sources), ("code", cards.code, MAX_CODE + 1)):
        if len(values) and int(values.max()) >= end:
            raise EcalBankError(RejectReason.MALFORMED, f"ecal: {name} {values.max()}, 0..{end - 1} expected")
    n_trigger = np.array([len(content) for content in cards.trigger], np.int64)
    if len(n_trigger) and n_trigger.max() > MAX_TRIGGER_BYTES:
        raise EcalBankError(
            RejectReason.OVERSIZED, f"ecal: {n_trigger.max()} trigger bytes of a card, at most {MAX_TRIGGER_BYTES}"
        )
    adc = cards.adc.astype(np.int64)
    is_long = cards.is_long | (adc < -SHORT_PEDESTAL) | (adc >= 16 - SHORT_PEDESTAL)
    pattern = (is_long.astype(np.int64) << np.arange(N_CHANNELS)).sum(axis=1)
    stream_words = 4 + (is_long.sum(axis=1) + 3) // 4
    trigger_words = (n_trigger + 3) // 4
    n_words = 2 + trigger_words + stream_words
    bank = cards.source.astype(np.int64) + (0 if event is None else n_sources * event)
    order = np.argsort(bank, kind="stable")
    first = np.zeros(len(bank), np.int64)
    first[order] = np.cumsum(n_words[order]) - n_words[order]
    words = np.zeros(int(n_words.sum()) + 1, np.uint32)
    words[first] = n_trigger | 4 * (1 + stream_words) << 7 | cards.code.astype(np.int64) << 14
    words[first + 1 + trigger_words] = pattern
    if n_trigger.any():
        as_bytes = words.view(np.uint8)
        within = np.arange(int(n_trigger.sum())) - np.repeat(np.cumsum(n_trigger) - n_trigger, n_trigger)
        as_bytes[np.repeat(4 * (first + 1), n_trigger) + within] = np.frombuffer(b"".join(cards.trigger), np.uint8)
    bits = np.where(is_long, 12, 4)
    at_bit = 32 * (first + 2 + trigger_words)[:, None] + np.cumsum(bits, axis=1) - bits
    value = (adc + np.where(is_long, LONG_PEDESTAL, SHORT_PEDESTAL)) << (at_bit % 32)
    np.bitwise_or.at(words, at_bit // 32, (value & 0xFFFFFFFF).astype(np.uint32))
    np.bitwise_or.at(words, at_bit // 32 + 1, (value >> 32).astype(np.uint32))
    ends = np.cumsum(np.bincount(bank, weights=n_words, minlength=n_sources * n_events)).astype(np.int64)
    content = words[:-1].astype(_U32).tobytes()
    return cut_into_banks(content, 4 * ends, LhcbBankType.ECAL_PACKED, EcalVersion.CARDS, range(n_sources))


def decode_ecal_boards(banks: Iterable[RawBank]) -> EcalBoards:
    """The boards of Calo banks of versions 4 and 5; banks of other types are skipped. Raises EcalBankError."""
    sources: list[int] = []
    places: list[int] = []
    content: list[NDArray[np.uint32]] = []
    for bank in banks:
        if bank.type != LhcbBankType.CALO:
            continue
        words = _words_of(bank)
        n_boards, left = divmod(len(words) - SKIPPED_WORDS, BOARD_WORDS)
        if left or not 0 <= n_boards <= SLOTS:
            raise EcalBankError(
                RejectReason.BAD_SIZE,
                f"{_where(bank)}: {len(words)} words, expected {SKIPPED_WORDS} and {BOARD_WORDS} for each of up to "
                f"{SLOTS} boards",
            )
        if bank.version == EcalVersion.BIG_ENDIAN:
            words = words.byteswap()
        sources += [number_of(bank.source_id)] * n_boards
        places += range(n_boards)
        content.append(words[SKIPPED_WORDS:])
    fibres = np.concatenate([*content, np.empty(0, np.uint32)]).astype(np.uint64).reshape(-1, 3)
    is_off = (fibres == np.array(FIBRE_OFF, np.uint64)).all(axis=1)
    # Three words as one number of 96 bits: channel k of the fibre is in bits 84 - 12 k to 95 - 12 k.
    doubled = np.stack([fibres[:, 0] << np.uint64(32) | fibres[:, 1], fibres[:, 1] << np.uint64(32) | fibres[:, 2]])
    shift = 84 - 12 * np.arange(_CHANNELS_OF_FIBRE)
    upper = shift >= 32
    value = np.where(
        upper,
        doubled[0][:, None] >> np.where(upper, shift - 32, 0).astype(np.uint64),
        doubled[1][:, None] >> np.where(upper, 0, shift).astype(np.uint64),
    )
    adc = (value & np.uint64(0xFFF)).astype(np.int64) - LONG_PEDESTAL
    adc[is_off] = VOID_ADC
    return EcalBoards(
        np.array(sources, np.uint32), np.array(places, np.uint32), adc.astype(np.int16).reshape(-1, N_CHANNELS)
    )


def encode_ecal_boards(
    boards: EcalBoards, version: EcalVersion, event: NDArray[np.int64] | None = None, n_events: int = 1
) -> list[RawBank]:
    """A bank of version 4 or 5 for each source of `boards`, in ascending order, with the boards of an event by `place`.

    A source has the same number of boards in each event. A fibre whose first channel is VOID_ADC is off. `event` as for
    encode_ecal_cards. Raises EcalBankError for values that do not fit.
    """
    fibres = boards.adc.astype(np.int64).reshape(-1, _CHANNELS_OF_FIBRE)
    is_off = fibres[:, 0] == VOID_ADC
    _check_adc(fibres[~is_off])
    value = np.where(is_off[:, None], 0, fibres + LONG_PEDESTAL)
    shift = 84 - 12 * np.arange(_CHANNELS_OF_FIBRE)
    words = np.empty((len(fibres), 3), np.uint32)
    for word in range(3):
        # Bits of the number that this word holds, above and below its own.
        at = shift - 32 * (2 - word)
        part = np.where(at >= 0, value << np.maximum(at, 0), value >> np.maximum(-at, 0)) * ((at > -12) & (at < 32))
        words[:, word] = np.bitwise_or.reduce(part & 0xFFFFFFFF, axis=1)
    words[is_off] = FIBRE_OFF
    numbers = np.unique(boards.source)
    bank = np.searchsorted(numbers, boards.source) + (0 if event is None else len(numbers) * event)
    order = np.lexsort((boards.place, bank))
    n_boards = np.bincount(bank, minlength=len(numbers) * n_events)
    if len(n_boards) and n_boards.max() > SLOTS:
        raise EcalBankError(RejectReason.OVERSIZED, f"ecal: {n_boards.max()} boards of a source, at most {SLOTS}")
    of_boards = words.reshape(-1, BOARD_WORDS)[order]
    ends = np.cumsum(SKIPPED_WORDS + BOARD_WORDS * n_boards)
    content = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint32)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(n_boards) - n_boards, n_boards)
    first = np.repeat(ends - BOARD_WORDS * n_boards, n_boards) + BOARD_WORDS * rank
    content[first[:, None] + np.arange(BOARD_WORDS)] = of_boards
    stored = content.astype(">u4" if version == EcalVersion.BIG_ENDIAN else "<u4").tobytes()
    sources = [int(number) for number in numbers]
    return cut_into_banks(stored, 4 * ends, LhcbBankType.CALO, version, sources) if sources else []


def _stream_words(pattern: int) -> int:
    """Words of the 32 values of a card."""
    return 4 + (pattern.bit_count() + 3) // 4


def _check_adc(adc: NDArray[np.integer]) -> None:
    if adc.size and not (int(adc.min()) >= MIN_ADC and int(adc.max()) <= MAX_ADC):
        raise EcalBankError(
            RejectReason.MALFORMED, f"ecal: ADC values {adc.min()} to {adc.max()}, {MIN_ADC} to {MAX_ADC} expected"
        )


def _where(bank: RawBank) -> str:
    return f"ecal bank of source {bank.source_id}"


def _words_of(bank: RawBank) -> NDArray[np.uint32]:
    versions = ECAL_VERSIONS[LhcbBankType(bank.type)]
    if bank.version not in versions:
        raise EcalBankError(
            RejectReason.BAD_VERSION,
            f"{_where(bank)}: bank version {bank.version}, {tuple(map(int, versions))} are supported",
        )
    if len(bank.payload) % 4:
        raise EcalBankError(RejectReason.BAD_SIZE, f"{_where(bank)}: {len(bank.payload)} bytes are not whole words")
    return np.frombuffer(bank.payload, _U32).astype(np.uint32)
