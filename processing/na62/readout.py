"""The readout of NA62's RICH: one source, whose bank has all hits of an event."""

from hltnode.processing.framework.readout import OneEncodingReadout
from hltnode.protocol.na62.rich_banks import RICH_SOURCE, RICH_SUBDETECTOR, RichBankType
from hltnode.protocol.raw_data.source_id import ODIN_SUBDETECTOR


def is_rich_source(source: int) -> bool:
    """Whether a source id is that of the RICH."""
    return source == RICH_SOURCE


RICH_READOUT = OneEncodingReadout(
    subdetectors={ODIN_SUBDETECTOR: "TIMING", RICH_SUBDETECTOR: "RICH"},
    bank_types={int(each): each.name for each in RichBankType},
    data_types=frozenset({int(RichBankType.HITS)}),
    error_type=int(RichBankType.SEVERAL_BANKS),
    is_source=is_rich_source,
    truth_types=frozenset({int(RichBankType.TRUE_RINGS)}),
)
"""Hits of the RICH."""
