"""The readout of a mu -> eee pixel detector: sources of any number. A raw event is a sub-slice of time."""

from hltnode.processing.framework.readout import OneEncodingReadout
from hltnode.protocol.mu3e.hit_banks import MU3E_SUBDETECTOR, HitBankType
from hltnode.protocol.raw_data.source_id import ODIN_SUBDETECTOR, subdetector_of


def is_pixel_source(source: int) -> bool:
    """Whether a source id belongs to the pixel detector."""
    return subdetector_of(source) == MU3E_SUBDETECTOR


MU3E_READOUT = OneEncodingReadout(
    subdetectors={ODIN_SUBDETECTOR: "TIMING", MU3E_SUBDETECTOR: "PIXELS"},
    bank_types={int(each): each.name for each in HitBankType},
    data_types=frozenset({int(HitBankType.HITS)}),
    error_type=int(HitBankType.SEVERAL_BANKS),
    is_source=is_pixel_source,
    truth_types=frozenset({int(HitBankType.TRUE_IDS), int(HitBankType.TRUE_PARTICLES), int(HitBankType.TRUE_DECAYS)}),
)
"""Hits by source."""
