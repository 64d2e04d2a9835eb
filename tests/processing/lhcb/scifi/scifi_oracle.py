"""Expected output of the SciFi kernels for an event: docs/physics/scifi.md in NumPy, in double precision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.lhcb.geometry.ideal_scifi import LINKS_OF_BANKS, QUARTERS_PER_LAYER
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry, SciFiHitPositions
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.scifi import decode_scifi, decode_scifi_words
from hltnode.protocol.lhcb.errors import SciFiBankError
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import number_of, subdetector_of

BANKS_OF_STATION = QUARTERS_PER_LAYER * 4 * len(LINKS_OF_BANKS[0])
ONE_HIT_PER_WORD = 4
"""The bank version in which each word is one hit."""


@dataclass(frozen=True, slots=True)
class ExpectedHits:
    """The hits of an event by zone, x and id, their pseudo-sizes, and the flags of the event."""

    flags: EventFlag
    hits: SciFiHitPositions
    pseudo_size: NDArray[np.uint32]

    def zone_offset(self) -> NDArray[np.int64]:
        return np.searchsorted(self.hits.zone, np.arange(32))


def n_links(bank: int) -> int:
    """Links that a bank reads."""
    station, in_station = divmod(bank, BANKS_OF_STATION)
    return LINKS_OF_BANKS[station][in_station % len(LINKS_OF_BANKS[station])]


def is_read(bank: RawBank) -> bool:
    """Whether the bank comes from a source of the SciFi: simulated source ids have no sub-detector."""
    side = subdetector_of(bank.source_id)
    return side in (SubDetector.SCIFI_A, SubDetector.SCIFI_C) or (side == 0 and bank.type == LhcbBankType.FT_CLUSTER)


def expected_hits(banks: Sequence[RawBank], geometry: SciFiGeometry, *, lossy: bool = False) -> ExpectedHits:
    """Damaged banks and banks with the same number give no hits and flag the event."""
    read = [bank for bank in banks if is_read(bank)]
    times = Counter(number_of(bank.source_id) for bank in read)
    good: list[RawBank] = []
    flags = EventFlag(0)
    for bank in read:
        try:
            words = decode_scifi_words([bank])
            decode_scifi([bank])
        except SciFiBankError:
            flags = EventFlag.BANK_ERROR
            continue
        if bank.type != LhcbBankType.FT_CLUSTER or words.link.max(initial=0) >= n_links(number_of(bank.source_id)):
            flags = EventFlag.BANK_ERROR
        elif len(words.link):
            good.append(bank)
    once = [bank for bank in good if times[number_of(bank.source_id)] == 1]
    if len(once) < len(good):
        flags = EventFlag.BANK_ERROR
    if lossy:
        once = [RawBank(bank.type, ONE_HIT_PER_WORD, bank.source_id, bank.payload) for bank in once]
    hits = decode_scifi(once)
    positions = geometry.hits(hits)
    assert len(positions.x) == len(hits.bank)
    return in_order(flags, positions, hits.pseudo_size)


def in_order(flags: EventFlag, positions: SciFiHitPositions, pseudo_size: NDArray[np.uint32]) -> ExpectedHits:
    """Hits by zone, x and id."""
    order = np.lexsort((pseudo_size, positions.lhcb_id, positions.x, positions.zone))
    sorted_positions = SciFiHitPositions(*(getattr(positions, name)[order] for name in SciFiHitPositions.__slots__))
    return ExpectedHits(flags, sorted_positions, pseudo_size[order])


def expected_hits_of_links(banks: Sequence[RawBank], geometry: SciFiGeometry, *, lossy: bool = False) -> ExpectedHits:
    """As expected_hits, for banks of versions 7 and 8: word by word in Python."""
    assert geometry.sipms is not None
    row_of = {source: row for row, source in enumerate(geometry.sipms.source.tolist())}
    flags = EventFlag(0)
    found: list[tuple[int, int, int]] = []
    for bank in banks:
        if not is_read(bank):
            continue
        words = np.frombuffer(bank.payload, "<u2", len(bank.payload) // 2)[2:].tolist()
        words = words[:-1] if words and words[-1] == 0 else words
        row = row_of.get(bank.source_id)
        of_links = bank.type == LhcbBankType.FT_CLUSTER and bank.version in (7, 8)
        if not of_links or row is None or len(bank.payload) % 2 or len(words) > 31 * 24:
            flags = EventFlag.BANK_ERROR
            continue
        of_link: dict[int, list[tuple[int, int, int]]] = {}
        for link, hit in link_hits(words, 4 if lossy else bank.version):
            if link >= 24:
                flags = EventFlag.BANK_ERROR
            elif geometry.sipms.sipm[row, link] != 14_336:
                of_link.setdefault(link, []).append(hit)
        for link, hits in of_link.items():
            if len({(cell, fraction) for cell, fraction, _ in hits}) < len(hits):
                flags = EventFlag.BANK_ERROR
            if len(hits) > 128:
                flags = EventFlag.BANK_ERROR
                continue
            sipm = int(geometry.sipms.sipm[row, link])
            found += [(sipm + cell, fraction, size) for cell, fraction, size in hits]
    channel, fraction, size = np.array(found, np.uint32).reshape(-1, 3).T
    return in_order(flags, geometry.positions(channel, fraction, size), size)


def link_hits(words: Sequence[int], version: int) -> list[tuple[int, tuple[int, int, int]]]:
    """Link, and cell, fraction and pseudo-size of the hits of words (docs/formats/scifi-banks.md)."""
    fields = [(word >> 9, word >> 2 & 127, word >> 1 & 1, word & 1) for word in words]
    hits: list[tuple[int, tuple[int, int, int]]] = []
    at = 0
    while at < len(fields):
        link, cell, fraction, edge = fields[at]
        at += 1
        last = fields[at] if at < len(fields) else (-1, 0, 0, 0)
        if edge == 0 or version == ONE_HIT_PER_WORD:
            hits.append((link, (cell, fraction, 0 if edge else 4)))
        elif last[0] != link or last[1] <= cell:
            hits.append((link, (cell, fraction, 0)))
        else:
            at += 1
            fits = (fraction, last[2]) == (1, 0) if version == 8 else fraction == 0
            if not fits or last[3] == 0:
                continue
            width, j = last[1] - cell + 2, 0
            if width <= 8:
                hits.append((link, (cell + (width - 1) // 2 - 1, (width - 1) % 2, width)))
                continue
            while j < width - 4:
                hits.append((link, (cell + j, 1, 0)))
                j += 4
            hits.append((link, (cell + j + (width - j - 1) // 2 - 1, (width - 1) % 2, 0)))
    return hits
