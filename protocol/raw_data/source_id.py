"""Run-3 source ids: 5 bits of sub-detector, 11 bits of number (docs/formats/source-ids.md)."""

from __future__ import annotations

from enum import IntEnum

from hltnode.protocol.errors import BankError, RejectReason

NUMBER_BITS = 11
MAX_NUMBER = (1 << NUMBER_BITS) - 1


class SubDetector(IntEnum):
    """Top five bits of a Run-3 source id: the sub-detectors of LHCb, which defined these containers."""

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


def source_id(subdetector: int, number: int) -> int:
    """The u16 source id of link `number` (0..2047) of `subdetector` (0..31)."""
    if not (0 <= number <= MAX_NUMBER and 0 <= subdetector < 32):
        raise BankError(RejectReason.UNKNOWN_SOURCE, f"no source id for sub-detector {subdetector}, number {number}")
    return subdetector << NUMBER_BITS | number


def subdetector_of(source: int) -> int:
    """Top five bits of a source id: a SubDetector, or another number."""
    return source >> NUMBER_BITS


def number_of(source: int) -> int:
    """Low eleven bits of a source id."""
    return source & MAX_NUMBER
