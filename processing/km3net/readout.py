"""The readout of an underwater telescope: sources of any number, such as the floors of a tower or the lines of a block.

A raw event is a sub-slice of time.
"""

from hltnode.processing.framework.readout import OneEncodingReadout
from hltnode.protocol.km3net.hit_banks import KM3NET_SUBDETECTOR, HitBankType
from hltnode.protocol.raw_data.source_id import ODIN_SUBDETECTOR, subdetector_of


def is_telescope_source(source: int) -> bool:
    """Whether a source id belongs to the telescope."""
    return subdetector_of(source) == KM3NET_SUBDETECTOR


TELESCOPE_READOUT = OneEncodingReadout(
    subdetectors={ODIN_SUBDETECTOR: "TIMING", KM3NET_SUBDETECTOR: "PMTS"},
    bank_types={int(each): each.name for each in HitBankType},
    data_types=frozenset({int(HitBankType.HITS)}),
    error_type=int(HitBankType.SEVERAL_BANKS),
    is_source=is_telescope_source,
    truth_types=frozenset({int(HitBankType.TRUE_MUONS)}),
)
"""Hits by source."""
