"""Bank types of LHCb: of its detectors, simulation and file writers (docs/formats/bank-types.md)."""

from enum import IntEnum

from hltnode.protocol.raw_data.bank_types import TYPES_OF_NODE


class LhcbBankType(IntEnum):
    """LHCb's own types. The types that a node reserves are in BankType; they are LHCb's numbers too."""

    VELO = 8
    RICH = 9
    MUON = 13
    DAQ = 15
    ECAL_PACKED = 21
    HCAL_PACKED = 22
    MC_TRACKS = 32
    MC_VERTICES = 33
    MC_SAMPLE = 34
    MC_ECAL = 35
    TEST_DET = 51
    FILE_ID = 62
    VP = 63
    FT_CLUSTER = 64
    UT = 66
    VP_RETINA_CLUSTER = 73
    CALO = 77
    MUON_SPECIAL = 79
    PLUME = 84
    DAQ_ERROR_FRAGMENT_THROTTLED = 89
    DAQ_ERROR_BXID_CORRUPTED = 90
    DAQ_ERROR_SYNC_BXID_CORRUPTED = 91
    DAQ_ERROR_FRAGMENT_MISSING = 92
    DAQ_ERROR_FRAGMENT_TRUNCATED = 93
    DAQ_ERROR_IDLE_BXID_CORRUPTED = 94
    DAQ_ERROR_FRAGMENT_MALFORMED = 95
    DAQ_ERROR_EVID_JUMPED = 96
    VELO_SPP_AND_CLUSTER = 97
    UT_NZS = 98
    UT_SPECIAL = 99
    DAQ_ERROR_ALIGN_FIFO_FULL = 100
    DAQ_ERROR_FRAGMENT_SIZE_WRONG = 101
    PCIE_TEST = 254


TRUTH_TYPES = frozenset(
    {LhcbBankType.MC_TRACKS, LhcbBankType.MC_VERTICES, LhcbBankType.MC_SAMPLE, LhcbBankType.MC_ECAL}
)
"""Banks that only the simulation writes."""
NOT_READ_OUT = TYPES_OF_NODE | {LhcbBankType.DAQ, LhcbBankType.FILE_ID}
"""Banks written by the trigger or the file writer, never by the readout."""
