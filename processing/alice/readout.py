"""The readout of ALICE's TPC: 36 to 1,728 sources, each with rows of one slice."""

from hltnode.processing.framework.readout import OneEncodingReadout
from hltnode.protocol.alice.tpc_banks import TPC_SUBDETECTOR, TRUTH_TYPES, TpcBankType, is_tpc_source
from hltnode.protocol.raw_data.source_id import ODIN_SUBDETECTOR

TPC_READOUT = OneEncodingReadout(
    subdetectors={ODIN_SUBDETECTOR: "TIMING", TPC_SUBDETECTOR: "TPC"},
    bank_types={int(each): each.name for each in TpcBankType},
    data_types=frozenset({int(TpcBankType.CLUSTERS)}),
    error_type=int(TpcBankType.SEVERAL_BANKS),
    is_source=is_tpc_source,
    truth_types=TRUTH_TYPES,
)
"""Clusters by source."""
