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
    order = np.lexsort((positions.lhcb_id, positions.x, positions.zone))
    sorted_positions = SciFiHitPositions(*(getattr(positions, name)[order] for name in SciFiHitPositions.__slots__))
    return ExpectedHits(flags, sorted_positions, hits.pseudo_size[order])
