"""Run-3 source ids: 5 bits of sub-detector, 11 bits of number (formats.md B2)."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache

from hltnode.protocol.errors import BankError, RejectReason
from hltnode.protocol.raw_data.raw_bank import BankType, RawBank

NUMBER_BITS = 11
MAX_NUMBER = (1 << NUMBER_BITS) - 1

# Number under the test detector's sub-detector that carries the truth bank of vertices; the banks of particles are
# numbered from 0, and an event cannot have so many of them.
TRUTH_VERTEX_NUMBER = 1024

# From this bank version on, a VELO bank holds a pair of sensors (formats.md B8).
FIRST_SENSOR_PAIR_VERSION = 4


class SubDetector(IntEnum):
    """Top five bits of a Run-3 source id."""

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


# Sides (C, A) of the sub-detectors that are read out in two halves.
_TWO_SIDED: dict[int, tuple[SubDetector, SubDetector]] = {
    BankType.VP: (SubDetector.VELO_C, SubDetector.VELO_A),
    BankType.VP_RETINA_CLUSTER: (SubDetector.VELO_C, SubDetector.VELO_A),
    BankType.UT: (SubDetector.UT_C, SubDetector.UT_A),
    BankType.FT_CLUSTER: (SubDetector.SCIFI_C, SubDetector.SCIFI_A),
    BankType.MUON: (SubDetector.MUON_C, SubDetector.MUON_A),
}
_ONE_SIDED: dict[int, SubDetector] = {
    # Simulated Rich banks do not say which of the two detectors they belong to.
    BankType.RICH: SubDetector.RICH1,
    BankType.ECAL_PACKED: SubDetector.ECAL,
    BankType.HCAL_PACKED: SubDetector.HCAL,
    BankType.CALO: SubDetector.ECAL,
    BankType.PLUME: SubDetector.PLUME,
    BankType.MC_TRACKS: SubDetector.TDET,
}
# Written by the trigger or the file writer, never by the readout.
_NOT_READ_OUT = frozenset(
    {
        BankType.DAQ,
        BankType.HLT_DEC_REPORTS,
        BankType.TAE_HEADER,
        BankType.HLT_ROUTING_BITS,
        BankType.HLT_SEL_REPORTS,
        BankType.HLT_LUMI_SUMMARY,
        BankType.FILE_ID,
    }
)
_VELO_TYPES = frozenset({BankType.VP, BankType.VP_RETINA_CLUSTER})


def source_id(subdetector: int, number: int) -> int:
    """The u16 source id of link `number` (0..2047) of `subdetector` (0..31)."""
    if not (0 <= number <= MAX_NUMBER and 0 <= subdetector < 32):
        raise BankError(RejectReason.UNKNOWN_SOURCE, f"no source id for sub-detector {subdetector}, number {number}")
    return subdetector << NUMBER_BITS | number


def subdetector_of(source: int) -> int:
    """Top five bits of a source id: a SubDetector, or a number that is none."""
    return source >> NUMBER_BITS


def number_of(source: int) -> int:
    """Low eleven bits of a source id."""
    return source & MAX_NUMBER


def readout_source_id(bank: RawBank) -> int | None:
    """The Run-3 source id under which a bank is read out, or None if no readout board writes such a bank.

    - ODIN is source 0.
    - A bank whose source id has top bits keeps it.
    - Simulated banks (no top bits) keep their number.  VELO: odd modules are on side A (x > 0), even ones on side C.
      UT, SciFi, Muon: odd numbers go to side A, even ones to side C, which spreads the load but is not the cabling.
    - Truth banks belong to the test detector: particles by their own number, vertices to number 1024.
    - Trigger results, DAQ and file banks, and simulated banks of unknown type, are not read out.
    """
    return _readout_source_id(bank.type, bank.version >= FIRST_SENSOR_PAIR_VERSION, bank.source_id)


@lru_cache(maxsize=16384)
def _readout_source_id(bank_type: int, holds_sensor_pair: bool, source: int) -> int | None:
    if bank_type in _NOT_READ_OUT:
        return None
    if bank_type == BankType.ODIN:
        return SubDetector.ODIN << NUMBER_BITS
    if source > MAX_NUMBER:
        return source
    if bank_type == BankType.MC_VERTICES:
        return source_id(SubDetector.TDET, TRUTH_VERTEX_NUMBER)
    sides = _TWO_SIDED.get(bank_type)
    if sides is None:
        subdetector = _ONE_SIDED.get(bank_type)
        return None if subdetector is None else source_id(subdetector, source)
    # A module has four sensors, that is two sensor pairs.
    per_module = (2 if holds_sensor_pair else 4) if bank_type in _VELO_TYPES else 1
    return source_id(sides[source // per_module & 1], source)
