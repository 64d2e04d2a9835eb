"""SciFi (FTCluster) raw banks of versions 7 and 8, those of data taking (docs/formats/scifi-banks.md).

A bank has up to 24 links, each the read-out of one SiPM of 128 channels. The geometry lists the SiPM of each link, by
source id. Words may be in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import SCIFI_OF_LINKS, SciFiVersion
from hltnode.protocol.lhcb.banks.scifi import (
    CHANNELS_PER_LINK,
    MAX_CLUSTERS_PER_LINK,
    MAX_SINGLE_WIDTH,
    NARROW,
    PIECE_OF_WIDE,
    hits_by_rule,
    split_words,
)
from hltnode.protocol.lhcb.errors import SciFiBankError
from hltnode.protocol.raw_data.raw_bank import RawBank, cut_into_banks

LINKS_OF_BANK = 24
MAX_WORDS = LINKS_OF_BANK * MAX_CLUSTERS_PER_LINK
"""Words of a bank; a bank with more is ignored."""

_U16 = np.dtype("<u2")
_HEADER_WORDS = 2


@dataclass(frozen=True, slots=True, eq=False)
class SciFiLinkHits:
    """SciFi hits by link; all arrays u32[n].

    `source` id of the bank, `link` (24 and above do not exist), `cell` 0..127; `fraction` in halves of a channel;
    `pseudo_size`: 4 for narrow clusters, the width for clusters of two words with up to 8 channels, 0 for the pieces of
    wider ones.
    """

    source: NDArray[np.uint32]
    link: NDArray[np.uint32]
    cell: NDArray[np.uint32]
    fraction: NDArray[np.uint32]
    pseudo_size: NDArray[np.uint32]


def decode_scifi_links(banks: Iterable[RawBank]) -> SciFiLinkHits:
    """The hits of FTCluster banks of versions 7 and 8, in the order of their words; other types are skipped.

    A bank without a complete header is empty. Raises SciFiBankError for an odd size and for more than 744 words.
    """
    parts: list[NDArray[np.uint16]] = []
    sources: list[int] = []
    versions: list[int] = []
    for bank in banks:
        if bank.type != LhcbBankType.FT_CLUSTER:
            continue
        where, size = f"FTCluster bank of source {bank.source_id}", len(bank.payload)
        if bank.version not in SCIFI_OF_LINKS:
            raise SciFiBankError(
                RejectReason.BAD_VERSION, f"{where}: bank version {bank.version}, 7 and 8 are supported here"
            )
        if size % _U16.itemsize:
            raise SciFiBankError(RejectReason.BAD_SIZE, f"{where}: {size} bytes are not whole words")
        words = np.frombuffer(bank.payload, _U16)[_HEADER_WORDS:]
        if len(words) and words[-1] == 0:
            words = words[:-1]
        if len(words) > MAX_WORDS:
            raise SciFiBankError(RejectReason.OVERSIZED, f"{where}: {len(words)} words, {MAX_WORDS} at most")
        parts.append(words)
        sources.append(bank.source_id)
        versions.append(bank.version)
    counts = [len(part) for part in parts]
    all_words = (np.concatenate(parts) if parts else np.empty(0, _U16)).astype(np.uint32)
    bank_of_word = np.repeat(np.arange(len(parts), dtype=np.uint32), counts)
    hits = hits_by_rule(split_words(all_words, bank_of_word), np.repeat(np.array(versions, np.uint32), counts))
    return SciFiLinkHits(
        source=np.array(sources, np.uint32)[hits.bank],
        link=hits.offset >> np.uint32(7),
        cell=hits.offset & np.uint32(CHANNELS_PER_LINK - 1),
        fraction=hits.fraction,
        pseudo_size=hits.pseudo_size,
    )


def encode_scifi_links(
    hits: SciFiLinkHits,
    sources: Sequence[int],
    version: int,
    event: NDArray[np.int64] | None = None,
    n_events: int = 1,
) -> list[RawBank]:
    """Banks that decode_scifi_links reads as these hits: one of each source, empty ones included, for each event.

    Hits of a width of 5 to 8 become two words. A hit of pseudo-size 0 becomes a lone piece: such words stand at the end
    of their link and fall, because a larger cell behind them would end their cluster. `event` as for encode_scifi.
    Raises SciFiBankError for another version, a source that is not in `sources`, values that do not fit, and more than
    744 words.
    """
    if version not in SCIFI_OF_LINKS:
        raise SciFiBankError(RejectReason.BAD_VERSION, f"SciFi: version {version} has no lists of SiPMs")
    order = np.argsort(np.array(sources, np.int64))
    known = np.array(sources, np.int64)[order]
    at = np.minimum(np.searchsorted(known, hits.source), len(known) - 1)
    if (known[at] != hits.source).any():
        raise SciFiBankError(RejectReason.UNKNOWN_SOURCE, "SciFi hit: its source is not in the list")
    bank = order[at] + (0 if event is None else len(sources) * event)
    size = hits.pseudo_size.astype(np.int64)
    pair = (size > NARROW) & (size <= MAX_SINGLE_WIDTH)
    if not (pair | np.isin(size, (NARROW, PIECE_OF_WIDE))).all() or (pair & (hits.fraction != (size - 1) % 2)).any():
        raise SciFiBankError(RejectReason.MALFORMED, "SciFi hit: its size and fraction are those of no cluster")
    first = hits.cell.astype(np.int64) - np.where(pair, (size - 1) // 2 - 1, 0)
    second = first + np.where(pair, size - 2, 0)
    for name, low, high, end in (
        ("link", hits.link.min(initial=0), hits.link.max(initial=0), LINKS_OF_BANK),
        ("cell", first.min(initial=0), second.max(initial=0), CHANNELS_PER_LINK),
        ("fraction", hits.fraction.min(initial=0), hits.fraction.max(initial=0), 2),
    ):
        if low < 0 or high >= end:
            raise SciFiBankError(RejectReason.MALFORMED, f"SciFi hit: {name} {low}..{high}, 0..{end - 1} expected")
    lone = size == PIECE_OF_WIDE
    which = np.repeat(np.arange(len(size)), 1 + pair)
    is_second = np.append(False, which[1:] == which[:-1]) if len(which) else np.zeros(0, np.bool_)
    cell = np.where(is_second, second[which], first[which])
    piece_fraction = np.where(is_second, 0, int(version == SciFiVersion.VERSION_8))
    fraction = np.where(pair[which], piece_fraction, hits.fraction[which])
    edge = (pair | lone)[which].astype(np.int64)
    words = hits.link[which].astype(np.int64) << 9 | cell << 2 | fraction << 1 | edge
    rank = np.where(lone, 2 * CHANNELS_PER_LINK - first, first)[which]
    by_bank = np.lexsort((is_second, rank, hits.link[which], bank[which]))
    n_banks = n_events * len(sources)
    counts = np.bincount(bank[which], minlength=n_banks)
    if counts.max(initial=0) > MAX_WORDS:
        raise SciFiBankError(RejectReason.OVERSIZED, f"SciFi: {counts.max()} words of a bank, {MAX_WORDS} at most")
    sizes = _HEADER_WORDS + counts + counts % 2
    bank_ends = np.cumsum(sizes)
    stream = np.zeros(int(bank_ends[-1]), _U16)
    before = bank_ends - sizes + _HEADER_WORDS - (np.cumsum(counts) - counts)
    stream[np.arange(len(words)) + np.repeat(before, counts)] = words[by_bank]
    return cut_into_banks(stream.tobytes(), 2 * bank_ends, LhcbBankType.FT_CLUSTER, version, sources)
