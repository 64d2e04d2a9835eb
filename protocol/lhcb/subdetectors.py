"""Sub-detectors of LHCb in its source ids (docs/formats/source-ids.md)."""

from enum import IntEnum


class SubDetector(IntEnum):
    """Top five bits of a source id of LHCb."""

    ODIN = 0
    VELO_A = 2
    VELO_C = 3
    RICH1 = 4
    UT_A = 5
    UT_C = 6
    SCIFI_A = 7
    SCIFI_C = 8
    RICH2 = 9
    PLUME = 10
    ECAL = 11
    HCAL = 12
    MUON_A = 13
    MUON_C = 14
    TDET = 15
