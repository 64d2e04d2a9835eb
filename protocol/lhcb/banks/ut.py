"""UT raw banks: version 3 (simulation) and version 4 (data taking) (docs/formats/ut-banks.md).

A board reads out six lanes, one sensor of 512 strips each.  Version 3 lists clusters, then their charges; version 4
lists single strips with their charge, lane by lane in lines of 256 bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import UT, UtVersion
from hltnode.protocol.lhcb.errors import UtBankError
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.raw_bank import RawBank, cut_into_banks
from hltnode.protocol.raw_data.source_id import number_of, source_id, subdetector_of

N_BOARDS = 240
N_LANES = 6
N_STRIPS = 512
# Existing boards: two sides of 21 boards in the first two layers, of 24 in the last two; 64 numbers per layer.
BOARDS = tuple(64 * layer + board for layer in range(4) for board in range(42 if layer < 2 else 48))

# Index of a board among the existing ones, -1 for other numbers.
_INDEX_OF_BOARD = np.full(N_BOARDS, -1, np.int64)
_INDEX_OF_BOARD[list(BOARDS)] = np.arange(len(BOARDS))

_READABLE_VERSIONS = UT.read_versions
_U16 = np.dtype("<u2")
_HEADER_SIZE_V3 = 4
# Upper half of the header of every simulated bank.
_HEADER_MARK_V3 = 0x80
_HEADER_SIZE_V4 = 8
# A line of version 4 is 16 words of 16 bits, of which 12 are used: two per lane, the last lane first.
_LINE_WORDS = 16
_LANE_BYTES_V4 = (4, 5, 6, 7, 0, 1)  # the header bytes with the number of hits of lanes 0..5
_BAD_LANE = 255
_LAST_ADC = 0x80
_STRIP_SHIFT_V4 = 5


_Counts = TypeVar("_Counts", int, NDArray[np.int64])


@dataclass(frozen=True, slots=True, eq=False)
class UtHits:
    """UT clusters (version 3) or strips (version 4) of any number of boards; all arrays u32[n].

    `board` 0..239, `lane` 0..5, `strip` as the geometry numbers strips (1..512 in simulation), `fraction` in quarters
    of a strip.  `flags`, version 3: bit 0 is set from three strips on, bit 1 if the charge passes the high threshold.
    `adc`, version 4: the strip's charge, 0..31. Fields that a version lacks are 0.
    `bad_boards`: boards of version 4 banks that report a bad lane; they give no hits.
    """

    board: NDArray[np.uint32]
    lane: NDArray[np.uint32]
    strip: NDArray[np.uint32]
    fraction: NDArray[np.uint32]
    flags: NDArray[np.uint32]
    adc: NDArray[np.uint32]
    bad_boards: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class UtCharges:
    """Charges of the clusters of version 3 banks.

    `neighbour_sum` i8[n]: charge of the neighbouring strips; `n_strips` u32[n]; `adc` u8[sum of n_strips]: the charge
    of each strip, 0..127, cluster after cluster.
    """

    neighbour_sum: NDArray[np.int8]
    n_strips: NDArray[np.uint32]
    adc: NDArray[np.uint8]


def board_of(bank: RawBank) -> int:
    """The board (0..239) that wrote a UT bank.

    Version 3 banks, and version 4 banks without sub-detector bits, carry the board's number. Version 4 banks with
    sub-detector bits carry (board >> 1) + 1 in the low byte and the board's lowest bit in bit 10.
    """
    number = number_of(bank.source_id)
    if bank.version >= UtVersion.STRIPS and subdetector_of(bank.source_id) != 0:
        number = ((number & 0xFF) - 1) * 2 + (number >> 10)
    if not 0 <= number < N_BOARDS:
        raise UtBankError(
            RejectReason.UNKNOWN_SOURCE, f"UT bank of source {bank.source_id}: board {number}, 0..{N_BOARDS - 1} exist"
        )
    return number


def data_source_id(board: int) -> int:
    """The data-taking source id of a board: the first half of a layer's boards is on side C, the second on side A."""
    boards_per_side = 21 if board < 128 else 24
    side = SubDetector.UT_A if board % 64 >= boards_per_side else SubDetector.UT_C
    return source_id(side, (board & 1) << 10 | (board >> 1) + 1)


def decode_ut(banks: Iterable[RawBank]) -> UtHits:
    """Decode UT banks of versions 3 and 4, in their order; banks of other types are skipped.

    A version 4 bank is ordered by lane.  Raises UtBankError.
    """
    boards: list[int] = []
    counts: list[int] = []
    columns: list[NDArray[np.uint32]] = []
    bad_boards: list[int] = []
    for bank in banks:
        if bank.type != LhcbBankType.UT:
            continue
        board = board_of(bank)
        if bank.version == UtVersion.CLUSTERS:
            hits = _clusters_v3(bank)
        elif bank.version == UtVersion.STRIPS:
            lane_counts = _lane_counts_v4(bank)
            if lane_counts is None:
                bad_boards.append(board)
                continue
            hits = _strips_v4(bank, lane_counts)
        else:
            raise UtBankError(
                RejectReason.BAD_VERSION,
                f"{_where(bank)}: bank version {bank.version}, {_READABLE_VERSIONS} are supported",
            )
        boards.append(board)
        counts.append(hits.shape[1])
        columns.append(hits)
    lane, strip, fraction, flags, adc = np.concatenate(columns, axis=1) if columns else np.empty((5, 0), np.uint32)
    board_column = np.repeat(np.array(boards, np.uint32), counts)
    return UtHits(board_column, lane, strip, fraction, flags, adc, tuple(bad_boards))


def decode_ut_charges(banks: Iterable[RawBank]) -> UtCharges:
    """The charges of the clusters of version 3 banks, in the order of decode_ut.  Raises UtBankError."""
    neighbour_sums = bytearray()
    n_strips: list[int] = []
    adc = bytearray()
    for bank in banks:
        if bank.type != LhcbBankType.UT:
            continue
        if bank.version != UtVersion.CLUSTERS:
            raise UtBankError(
                RejectReason.BAD_VERSION, f"{_where(bank)}: version {bank.version} has no cluster charges"
            )
        payload = bytes(bank.payload)
        n = _clusters_v3(bank).shape[1]
        at = _charges_start(n)
        for _ in range(n):
            end = at + 1
            while end < len(payload) and payload[end] < _LAST_ADC:
                end += 1
            if end >= len(payload):
                raise UtBankError(RejectReason.TRUNCATED, f"{_where(bank)}: charges end after {len(payload)} bytes")
            neighbour_sums.append(payload[at])
            n_strips.append(end - at)
            adc += payload[at + 1 : end + 1]
            at = end + 1
        if at != len(payload):
            raise UtBankError(RejectReason.BAD_SIZE, f"{_where(bank)}: charges end at byte {at} of {len(payload)}")
    return UtCharges(
        np.frombuffer(bytes(neighbour_sums), np.int8),
        np.array(n_strips, np.uint32),
        np.frombuffer(bytes(adc), np.uint8) & np.uint8(_LAST_ADC - 1),
    )


def encode_ut_v3(
    hits: UtHits, charges: UtCharges, event: NDArray[np.int64] | None = None, n_events: int = 1
) -> list[RawBank]:
    """One version 3 bank for every existing board, empty ones included; the order of hits within a board is kept.

    For several events, `event` is the event number (0, 1, ...) of each hit; the banks of the events follow one another.
    `charges` belong to `hits`, cluster by cluster.  Raises UtBankError for values that do not fit.
    """
    n = len(hits.board)
    _check(
        "cluster", hits, strip=(hits.strip, 1, N_STRIPS + 1), fraction=(hits.fraction, 0, 4), flags=(hits.flags, 0, 4)
    )
    n_strips = charges.n_strips.astype(np.int64)
    if (
        len(charges.neighbour_sum) != n
        or len(n_strips) != n
        or len(charges.adc) != n_strips.sum()
        or (n_strips < 1).any()
    ):
        raise UtBankError(RejectReason.MISMATCH, f"UT: charges of {len(n_strips)} clusters do not fit {n} hits")
    if (charges.adc >= _LAST_ADC).any():
        raise UtBankError(
            RejectReason.OVERSIZED, f"UT: charge {charges.adc.max()} of a strip, at most {_LAST_ADC - 1} expected"
        )
    words = (
        hits.fraction
        | (hits.lane * np.uint32(N_STRIPS) + hits.strip - np.uint32(1)) << np.uint32(2)
        | hits.flags << np.uint32(14)
    ).astype(_U16)
    bank = _INDEX_OF_BOARD[hits.board] + (0 if event is None else len(BOARDS) * event)
    order = np.argsort(bank, kind="stable")
    counts = np.bincount(bank, minlength=n_events * len(BOARDS))
    # One row of bytes per cluster, board by board: neighbour sum, then the strips' charges, the last one marked.
    first_adc, n_strips = (np.cumsum(n_strips) - n_strips)[order], n_strips[order]
    row_ends = np.cumsum(n_strips + 1)
    rows = np.empty(int((n_strips + 1).sum()), np.uint8)
    is_adc = np.ones(len(rows), np.bool_)
    is_adc[row_ends - n_strips - 1] = False
    rows[~is_adc] = charges.neighbour_sum.view(np.uint8)[order]
    adc_before = np.cumsum(n_strips) - n_strips
    rows[is_adc] = charges.adc[np.repeat(first_adc - adc_before, n_strips) + np.arange(int(n_strips.sum()))]
    rows[row_ends - 1] |= _LAST_ADC
    # Layout of a bank: header, clusters, padding, rows.
    rows_of_bank = np.diff(np.append(0, row_ends)[np.cumsum(counts)], prepend=0)
    charges_at = _charges_start(counts)
    sizes = charges_at + rows_of_bank
    ends = np.cumsum(sizes)
    stream = np.zeros(int(ends[-1]), np.uint8)
    starts = ends - sizes
    stream[starts], stream[starts + 1], stream[starts + 2] = counts & 0xFF, counts >> 8, _HEADER_MARK_V3
    word_at = np.repeat(starts + _HEADER_SIZE_V3 - 2 * (np.cumsum(counts) - counts), counts) + 2 * np.arange(n)
    stream[word_at], stream[word_at + 1] = words[order] & 0xFF, words[order] >> 8
    row_at = np.repeat(starts + charges_at - (np.cumsum(rows_of_bank) - rows_of_bank), rows_of_bank)
    stream[row_at + np.arange(len(rows))] = rows
    return cut_into_banks(stream.tobytes(), ends, LhcbBankType.UT, UtVersion.CLUSTERS, BOARDS)


def encode_ut_v4(hits: UtHits) -> list[RawBank]:
    """One version 4 bank, with data-taking source id, for every existing board, empty ones included.

    The order of hits within a lane is kept; fraction and flags are not part of the format.  Raises UtBankError for
    values that do not fit, or more than 254 hits in a lane.
    """
    _check("strip", hits, strip=(hits.strip, 0, 1 << 11), adc=(hits.adc, 0, 1 << _STRIP_SHIFT_V4))
    words = (hits.strip << np.uint32(_STRIP_SHIFT_V4) | hits.adc).astype(_U16)
    banks = []
    for board, chosen in _by_board(hits.board):
        lane = hits.lane[chosen].astype(np.int64)
        counts = np.bincount(lane, minlength=N_LANES)
        if counts.max() >= _BAD_LANE:
            raise UtBankError(
                RejectReason.OVERSIZED, f"UT board {board}: {counts.max()} hits in a lane, at most {_BAD_LANE - 1} fit"
            )
        order = np.argsort(lane, kind="stable")
        within = np.arange(len(lane)) - np.repeat(np.cumsum(counts) - counts, counts)
        # A bank without hits has one line; the last line ends with its last lane.
        n_lines = max(1, (int(counts.max()) + 1) // 2)
        lines = np.zeros(n_lines * _LINE_WORDS, _U16)
        lines[_slots(lane[order], within)] = words[chosen][order]
        header = bytearray(_HEADER_SIZE_V4)
        for i, at in enumerate(_LANE_BYTES_V4):
            header[at] = counts[i]
        used = n_lines * _LINE_WORDS - (_LINE_WORDS - 2 * N_LANES)
        payload = bytes(header) + lines[:used].tobytes()
        banks.append(RawBank(LhcbBankType.UT, UtVersion.STRIPS, data_source_id(board), memoryview(payload)))
    return banks


def _where(bank: RawBank) -> str:
    return f"UT bank of source {bank.source_id}"


def _charges_start(n: _Counts) -> _Counts:
    return (_HEADER_SIZE_V3 + 2 * n + 3) & ~3


def _clusters_v3(bank: RawBank) -> NDArray[np.uint32]:
    """Lane, strip, fraction, flags and 0 of the clusters of a bank: u32[5, n]."""
    payload = bank.payload
    if len(payload) < _HEADER_SIZE_V3:
        raise UtBankError(RejectReason.TRUNCATED, f"{_where(bank)}: {len(payload)} bytes are too few for a header")
    n = int.from_bytes(payload[:2], "little")
    if _HEADER_SIZE_V3 + n * _U16.itemsize > len(payload):
        raise UtBankError(RejectReason.TRUNCATED, f"{_where(bank)}: {n} clusters announced in {len(payload)} bytes")
    words = np.frombuffer(payload, _U16, n, _HEADER_SIZE_V3).astype(np.uint32)
    lane, strip = np.divmod(words >> np.uint32(2) & np.uint32(0xFFF), np.uint32(N_STRIPS))
    if n and lane.max() >= N_LANES:
        raise UtBankError(
            RejectReason.MALFORMED, f"{_where(bank)}: a cluster in lane {lane.max()}, 0..{N_LANES - 1} exist"
        )
    return np.stack((lane, strip + np.uint32(1), words & np.uint32(3), words >> np.uint32(14), np.zeros(n, np.uint32)))


def _lane_counts_v4(bank: RawBank) -> NDArray[np.int64] | None:
    """Number of hits of each of the six lanes, or None if a lane is marked as bad."""
    payload = bank.payload
    if len(payload) % _U16.itemsize or len(payload) < _HEADER_SIZE_V4:
        raise UtBankError(RejectReason.BAD_SIZE, f"{_where(bank)}: {len(payload)} bytes")
    if len(payload) < _HEADER_SIZE_V4 + 2 * N_LANES * _U16.itemsize:
        # Without a complete first line the counts have no meaning: the readout had nothing to send.
        return np.zeros(N_LANES, np.int64)
    counts = np.array([payload[at] for at in _LANE_BYTES_V4], np.int64)
    return None if _BAD_LANE in counts else counts


def _strips_v4(bank: RawBank, counts: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Lane, strip, 0, 0 and charge of the strips of a bank: u32[5, n]."""
    lane = np.repeat(np.arange(N_LANES), counts)
    within = np.arange(len(lane)) - np.repeat(np.cumsum(counts) - counts, counts)
    slots = _slots(lane, within)
    words = np.frombuffer(bank.payload, _U16, offset=_HEADER_SIZE_V4)
    if len(slots) and slots.max() >= len(words):
        raise UtBankError(
            RejectReason.TRUNCATED, f"{_where(bank)}: {counts.tolist()} hits announced in {len(bank.payload)} bytes"
        )
    chosen = words[slots].astype(np.uint32)
    none = np.zeros(len(chosen), np.uint32)
    adc = chosen & np.uint32((1 << _STRIP_SHIFT_V4) - 1)
    return np.stack((lane.astype(np.uint32), chosen >> np.uint32(_STRIP_SHIFT_V4), none, none, adc))


def _slots(lane: NDArray[np.int64], within: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index of hit number `within` of a lane among the 16-bit words after the header."""
    return _LINE_WORDS * (within // 2) + 2 * (N_LANES - 1 - lane) + within % 2


def _by_board(board: NDArray[np.uint32]) -> list[tuple[int, NDArray[np.int64]]]:
    """For every existing board, the indices of its hits in their order."""
    order = np.argsort(board, kind="stable")
    ordered = board[order]
    first = np.searchsorted(ordered, BOARDS, side="left")
    last = np.searchsorted(ordered, BOARDS, side="right")
    return [(number, order[a:b]) for number, a, b in zip(BOARDS, first, last, strict=True)]


def _check(what: str, hits: UtHits, **columns: tuple[NDArray[np.uint32], int, int]) -> None:
    if len(hits.board) and (hits.board.max() >= N_BOARDS or _INDEX_OF_BOARD[hits.board].min() < 0):
        raise UtBankError(RejectReason.UNKNOWN_SOURCE, f"UT {what}: a board that does not exist")
    for name, (values, low, end) in {"lane": (hits.lane, 0, N_LANES), **columns}.items():
        if len(values) and not (low <= int(values.min()) and int(values.max()) < end):
            raise UtBankError(
                RejectReason.MALFORMED, f"UT {what}: {name} {values.min()}..{values.max()}, {low}..{end - 1} expected"
            )
