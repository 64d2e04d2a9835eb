"""SciFi (FTCluster) raw banks of versions 4, 5 and 6 (docs/formats/scifi-banks.md).

The front end sums neighbouring channels to clusters and writes one word for a cluster of up to four channels. It cuts a
wider cluster into pieces of four channels; versions 5 and 6 write only the first and the last piece, both flagged as
edges. Channels count from the first channel of the bank, which is part of the geometry. scifi_links.py has the banks of
versions 7 and 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import SCIFI, SCIFI_OF_LINKS, SciFiVersion
from hltnode.protocol.lhcb.errors import SciFiBankError
from hltnode.protocol.raw_data.raw_bank import RawBank, cut_into_banks
from hltnode.protocol.raw_data.source_id import number_of

N_BANKS = 240
N_LINKS = 128
CHANNELS_PER_LINK = 128
MAX_CLUSTERS_PER_LINK = 31
# Maximum number of channels of a word's cluster; wider clusters are cut into pieces of this size.
PIECE = 4
# Pseudo-size of a cluster of up to four channels, and of the pieces of a very wide cluster.
NARROW = 4
PIECE_OF_WIDE = 0
# Widest cluster that becomes one hit.
MAX_SINGLE_WIDTH = 8
# Distance of the two edges of a cluster of five channels, version 5; closer edges belong to no such cluster.
MIN_EDGE_DISTANCE = 3

_U16 = np.dtype("<u2")
_HEADER_WORDS = 2
# Bits of a channel that counts from the first of its bank: 7 of the link and 7 of the cell.
_CHANNEL_BITS = 14
_READABLE_VERSIONS = tuple(version for version in SCIFI.read_versions if version not in SCIFI_OF_LINKS)

_Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SciFiWords:
    """The stored words of any number of banks; all arrays u32[n].

    `bank` 0..239; `link` 0..127; `cell` 0..127; `fraction` in halves of a channel; `edge` is 1 for the first and the
    last piece of a cluster of more than four channels.
    """

    bank: NDArray[np.uint32]
    link: NDArray[np.uint32]
    cell: NDArray[np.uint32]
    fraction: NDArray[np.uint32]
    edge: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class SciFiHits:
    """SciFi hits of any number of banks; all arrays u32[n].

    `bank` 0..239; `offset` of the channel from the first channel of the bank; `fraction` in halves of a channel;
    `pseudo_size`: 4 for narrow clusters, the width for clusters of 5 to 8 channels, 0 for the pieces of wider ones.
    """

    bank: NDArray[np.uint32]
    offset: NDArray[np.uint32]
    fraction: NDArray[np.uint32]
    pseudo_size: NDArray[np.uint32]


def decode_scifi_words(banks: Iterable[RawBank]) -> SciFiWords:
    """The words of FTCluster banks, in their order; banks of other types are skipped.  Raises SciFiBankError."""
    words, numbers, counts, _ = _words_of(banks)
    return split_words(words, np.repeat(np.array(numbers, np.uint32), counts))


def decode_scifi(banks: Iterable[RawBank]) -> SciFiHits:
    """The hits of FTCluster banks, in their order, by the rule of each bank's version.

    The rule of version 5 gives exactly the ids in the truth of the simulation. Channels ascend from word to word and
    from hit to hit. Raises SciFiBankError for damaged banks, and in version 5 for two edges that are too close for a
    cluster of more than four channels.
    """
    words, numbers, counts, versions = _words_of(banks)
    bank = np.repeat(np.array(numbers, np.uint32), counts)
    version = np.repeat(np.array(versions, np.uint32), counts)
    return hits_by_rule(split_words(words, bank), version)


def encode_scifi(words: SciFiWords, event: NDArray[np.int64] | None = None, n_events: int = 1) -> list[RawBank]:
    """One version 5 bank for each of the 240, empty ones included; words are ordered by link and cell.

    For several events, `event` is the event number (0, 1, ...) of each word; the banks of the events follow one
    another. Raises SciFiBankError for values that do not fit, or more than 31 words of a link.
    """
    for name, values, end in (
        ("bank", words.bank, N_BANKS),
        ("link", words.link, N_LINKS),
        ("cell", words.cell, CHANNELS_PER_LINK),
        ("fraction", words.fraction, 2),
        ("edge", words.edge, 2),
    ):
        if len(values) and int(values.max()) >= end:
            raise SciFiBankError(RejectReason.MALFORMED, f"SciFi word: {name} {values.max()}, 0..{end - 1} expected")
    channel = words.link << np.uint32(7) | words.cell
    bank = words.bank.astype(np.int64) + (0 if event is None else N_BANKS * event)
    place = bank << _CHANNEL_BITS | channel
    order = np.argsort(place, kind="stable")  # fast for words that are already in order
    place = place[order]
    link_starts = np.flatnonzero(np.diff(place >> 7, prepend=-1))
    most = int(np.diff(link_starts, append=len(place)).max(initial=0))
    if most > MAX_CLUSTERS_PER_LINK:
        raise SciFiBankError(
            RejectReason.OVERSIZED, f"SciFi: {most} words of one link, {MAX_CLUSTERS_PER_LINK} at most"
        )
    data = (channel[order] << np.uint32(2) | words.fraction[order] << np.uint32(1) | words.edge[order]).astype(_U16)
    ends = np.searchsorted(place, np.arange(1, n_events * N_BANKS + 1) << _CHANNEL_BITS)
    counts = np.diff(ends, prepend=0)
    # Each bank has its header and an even number of words.
    sizes = _HEADER_WORDS + counts + counts % 2
    bank_ends = np.cumsum(sizes)
    stream = np.zeros(int(bank_ends[-1]), _U16)
    before = bank_ends - sizes + _HEADER_WORDS - (ends - counts)
    stream[np.arange(len(data)) + np.repeat(before, counts)] = data
    return cut_into_banks(
        stream.tobytes(), 2 * bank_ends, LhcbBankType.FT_CLUSTER, SciFiVersion.VERSION_5, range(N_BANKS)
    )


def words_of_clusters(
    bank: NDArray[np.uint32],
    link: NDArray[np.uint32],
    first: NDArray[np.uint32],
    width: NDArray[np.uint32],
    position: NDArray[np.float64],
) -> SciFiWords:
    """The words that the front end writes (version 5) for clusters of neighbouring channels of one link each.

    `first` channel and `width` in channels; `position` (the charge-weighted mean channel), rounded to halves, is the
    word of a cluster of up to four channels; a wider cluster gets the middles of its first and last pieces. Arrays [n];
    the words of cluster i precede those of i + 1.
    """
    wide = width > PIECE
    last_width = (width - np.uint32(1)) % np.uint32(PIECE) + np.uint32(1)
    halves = np.floor(2.0 * position + 0.5).astype(np.uint32)
    first_half = np.where(wide, 2 * first + PIECE - 1, np.clip(halves, 2 * first, 2 * (first + width) - 1))
    last_half = 2 * (first + width - last_width) + last_width - 1
    repeats = 1 + wide
    which = np.repeat(np.arange(len(wide)), repeats)
    second = np.flatnonzero(np.diff(which, prepend=-1) == 0)
    half = first_half[which]
    half[second] = last_half[which[second]]
    half = half.astype(np.uint32)
    return SciFiWords(
        bank[which], link[which], half >> np.uint32(1), half & np.uint32(1), wide[which].astype(np.uint32)
    )


def _words_of(banks: Iterable[RawBank]) -> tuple[NDArray[np.uint32], list[int], list[int], list[int]]:
    """All words; and for each bank its number, its number of words and its version."""
    parts: list[NDArray[np.uint16]] = []
    numbers: list[int] = []
    versions: list[int] = []
    for bank in banks:
        if bank.type != LhcbBankType.FT_CLUSTER:
            continue
        number, size = number_of(bank.source_id), len(bank.payload)
        where = f"FTCluster bank of source {bank.source_id}"
        if bank.version not in _READABLE_VERSIONS:
            raise SciFiBankError(
                RejectReason.BAD_VERSION, f"{where}: bank version {bank.version}, {_READABLE_VERSIONS} are supported"
            )
        if number >= N_BANKS:
            raise SciFiBankError(RejectReason.UNKNOWN_SOURCE, f"{where}: number {number}, 0..{N_BANKS - 1} exist")
        if size % _U16.itemsize or size < _HEADER_WORDS * _U16.itemsize:
            raise SciFiBankError(RejectReason.BAD_SIZE, f"{where}: {size} bytes are not a header and whole words")
        words = np.frombuffer(bank.payload, _U16)[_HEADER_WORDS:]
        if len(words) and words[-1] == 0:
            words = words[:-1]
        channels = words >> 2
        if (channels[1:] <= channels[:-1]).any():
            raise SciFiBankError(RejectReason.MALFORMED, f"{where}: the channels of its words do not ascend")
        parts.append(words)
        numbers.append(number)
        versions.append(bank.version)
    all_words = np.concatenate(parts).astype(np.uint32) if parts else np.empty(0, np.uint32)
    return all_words, numbers, [len(part) for part in parts], versions


def split_words(words: NDArray[np.uint32], bank: NDArray[np.uint32]) -> SciFiWords:
    """The fields of words (u32[n]) of the given banks."""
    return SciFiWords(
        bank=bank,
        link=words >> np.uint32(9),
        cell=words >> np.uint32(2) & np.uint32(CHANNELS_PER_LINK - 1),
        fraction=words >> np.uint32(1) & np.uint32(1),
        edge=words & np.uint32(1),
    )


def hits_by_rule(words: SciFiWords, version: NDArray[np.uint32]) -> SciFiHits:
    """The hits of words, in their order, by the rule of the bank version of each word.  Raises SciFiBankError."""
    parts = [rule(words, np.flatnonzero(version == number)) for number, rule in _RULES.items()]
    place, step, offset, fraction, size = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((step, place))
    return SciFiHits(
        words.bank[place[order]],
        offset[order].astype(np.uint32),
        fraction[order].astype(np.uint32),
        size[order].astype(np.uint32),
    )


def hits_of_words(words: SciFiWords) -> tuple[SciFiHits, NDArray[np.int64]]:
    """The hits of version 5 words, and the index of the word of each; for a wide cluster its first word.

    The rule is that of decode_scifi. Raises SciFiBankError.
    """
    place, step, offset, fraction, size = _hits_v5(words, np.arange(len(words.cell)))
    order = np.lexsort((step, place))
    hits = SciFiHits(
        words.bank[place[order]],
        offset[order].astype(np.uint32),
        fraction[order].astype(np.uint32),
        size[order].astype(np.uint32),
    )
    return hits, place[order]


# Hits as columns: index of the word, number of the hit within it, offset of the channel, fraction, pseudo-size.
_HitColumns = tuple[_Column, _Column, _Column, _Column, _Column]


def _hits_v4(words: SciFiWords, chosen: _Column) -> _HitColumns:
    """One word is one hit."""
    size = np.where(words.edge[chosen] == 1, PIECE_OF_WIDE, NARROW)
    return _hits_of_words(words, chosen, size)


def _hits_v5(words: SciFiWords, chosen: _Column) -> _HitColumns:
    """Two consecutive edges on one link are one cluster; all other words are narrow clusters."""
    starts, has_next = _pairs(words, chosen)
    edge = words.edge
    paired = has_next & (edge[np.minimum(starts + 1, len(edge) - 1)] == 1)
    firsts = starts[paired]
    distance = words.cell[firsts + 1].astype(np.int64) - words.cell[firsts]
    if (distance < MIN_EDGE_DISTANCE).any():
        where = firsts[distance.argmin()]
        raise SciFiBankError(
            RejectReason.MALFORMED,
            f"SciFi bank {words.bank[where]}, link {words.link[where]}: a cluster of more than {PIECE} channels from "
            f"cell {words.cell[where]} to cell {words.cell[where + 1]}",
        )
    last_fraction = words.fraction[firsts + 1].astype(np.int64)
    width = np.where(distance <= PIECE, 2 * distance - 1 + last_fraction, distance + PIECE * 2)
    plain = np.setdiff1d(chosen, np.concatenate((firsts, firsts + 1)), assume_unique=True)
    return _joined(
        _hits_of_words(words, plain, np.full(len(plain), NARROW)),
        _hits_of_pairs(words, firsts, width, distance, last_fraction, first_piece=1, fraction=words.fraction[firsts]),
    )


def _hits_v6(words: SciFiWords, chosen: _Column) -> _HitColumns:
    """An edge and the next word of its link form a cluster; if they cannot, both are dropped."""
    return _hits_of_pieces(words, chosen, lambda first, last: (first == 1) & (last == 0))


def _hits_v7(words: SciFiWords, chosen: _Column) -> _HitColumns:
    """As version 6, but the first piece has fraction 0, the last one any."""
    return _hits_of_pieces(words, chosen, lambda first, _: first == 0)


def _hits_of_pieces(
    words: SciFiWords,
    chosen: _Column,
    fit: Callable[[NDArray[np.uint32], NDArray[np.uint32]], NDArray[np.bool_]],
) -> _HitColumns:
    """`fit`: whether the fractions of two words are those of a first and a last piece."""
    starts, has_next = _pairs(words, chosen)
    firsts = starts[has_next]
    distance = words.cell[firsts + 1].astype(np.int64) - words.cell[firsts]
    proper = fit(words.fraction[firsts], words.fraction[firsts + 1]) & (words.edge[firsts + 1] == 1)
    lone = starts[~has_next]
    plain = np.setdiff1d(chosen, np.concatenate((firsts, firsts + 1, lone)), assume_unique=True)
    width = distance[proper] + 2
    # The last piece of a very wide cluster follows the pieces at 0, 4, ... below width - 4.
    n_pieces = -(-(width - PIECE) // PIECE)
    rest = width - PIECE * n_pieces
    firsts = firsts[proper]
    last, last_fraction = PIECE * n_pieces + (rest - 1) // 2 - 1, (rest - 1) % 2
    return _joined(
        _hits_of_words(words, plain, np.full(len(plain), NARROW)),
        _hits_of_words(words, lone, np.full(len(lone), PIECE_OF_WIDE)),
        _hits_of_pairs(
            words, firsts, width, last, last_fraction, first_piece=0, fraction=np.ones(len(firsts), np.uint32)
        ),
    )


_RULES: dict[SciFiVersion, Callable[[SciFiWords, _Column], _HitColumns]] = {
    SciFiVersion.ONE_HIT_PER_WORD: _hits_v4,
    SciFiVersion.VERSION_5: _hits_v5,
    SciFiVersion.VERSION_6: _hits_v6,
    SciFiVersion.VERSION_7: _hits_v7,
    SciFiVersion.VERSION_8: _hits_v6,
}


def _pairs(words: SciFiWords, chosen: _Column) -> tuple[_Column, NDArray[np.bool_]]:
    """The edges that may start a cluster, and a flag whether a word of the same link with a larger cell follows each.

    In a sequence of edges on one link every second edge starts a cluster; the others end the cluster of their
    predecessor.
    """
    link = words.bank.astype(np.int64) * N_LINKS + words.link
    follows = np.zeros(len(link), np.bool_)
    follows[1:] = (link[1:] == link[:-1]) & (words.cell[1:] > words.cell[:-1])
    edges = chosen[words.edge[chosen] == 1]
    continues = np.zeros(len(edges), np.bool_)
    continues[1:] = (np.diff(edges) == 1) & follows[edges[1:]]
    index = np.arange(len(edges))
    start_of_run = np.maximum.accumulate(np.where(continues, 0, index)) if len(edges) else index
    starts = edges[(index - start_of_run) % 2 == 0]
    has_next = np.zeros(len(starts), np.bool_)
    inside = starts + 1 < len(link)
    has_next[inside] = follows[starts[inside] + 1]
    return starts, has_next


def _hits_of_words(words: SciFiWords, chosen: _Column, size: _Column) -> _HitColumns:
    offset = (words.link[chosen].astype(np.int64) << 7) + words.cell[chosen]
    return chosen, np.zeros(len(chosen), np.int64), offset, words.fraction[chosen].astype(np.int64), size


def _hits_of_pairs(
    words: SciFiWords,
    firsts: _Column,
    width: _Column,
    last: _Column,
    last_fraction: _Column,
    *,
    first_piece: int,
    fraction: NDArray[np.uint32],
) -> _HitColumns:
    """Hits of clusters: one in the middle up to a width of 8; for a wider cluster its pieces, the last one at `last`.

    The pieces are 4 channels apart and have the `fraction` of their cluster, except the last one; in version 5 the
    first piece is no hit.
    """
    offset = (words.link[firsts].astype(np.int64) << 7) + words.cell[firsts]
    single = width <= MAX_SINGLE_WIDTH
    middle = width[single] - 1
    none = np.zeros(len(middle), np.int64)
    one_hit = (firsts[single], none, offset[single] + middle // 2 - 1, middle % 2, width[single])
    wide = ~single
    n_hits = -(-last[wide] // PIECE) - first_piece + 1
    which = np.repeat(np.flatnonzero(wide), n_hits)
    ends = np.cumsum(n_hits)
    step = np.arange(len(which)) - np.repeat(ends - n_hits, n_hits) + first_piece
    is_last = np.zeros(len(which), np.bool_)
    is_last[ends - 1] = True
    pieces = (
        firsts[which],
        step,
        offset[which] + np.where(is_last, last[which], PIECE * step),
        np.where(is_last, last_fraction[which], fraction[which].astype(np.int64)),
        np.full(len(which), PIECE_OF_WIDE),
    )
    return _joined(one_hit, pieces)


def _joined(*parts: _HitColumns) -> _HitColumns:
    place, step, offset, fraction, size = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return place, step, offset, fraction, size
