"""Readout of the detectors of LHCb: source ids of simulated banks, and the choice of the VELO encoding.

Source ids: docs/formats/source-ids.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from hltnode.protocol.lhcb.bank_types import NOT_READ_OUT, LhcbBankType
from hltnode.protocol.lhcb.bank_versions import DETECTORS, VELO, VeloVersion
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import MAX_NUMBER, NUMBER_BITS, source_id

VeloEncoding = Literal["retina", "superpixel"]
VeloBanks = Literal["auto", "retina", "superpixel"]

# Numbers of the truth banks of vertices, of the sample and of the calorimeter in the sub-detector of the test detector.
# The banks of particles are numbered from 0 and never reach these numbers.
TRUTH_VERTEX_NUMBER = 1024
TRUTH_SAMPLE_NUMBER = 1025
TRUTH_ECAL_NUMBER = 1026

# For each VELO encoding the bank type to skip: simulated events may hold the same hits in both encodings, with the same
# source ids.
NOT_READ_WITH: dict[VeloEncoding, LhcbBankType] = {
    "retina": LhcbBankType.VP,
    "superpixel": LhcbBankType.VP_RETINA_CLUSTER,
}

# Sides (C, A) of the sub-detectors with two readout halves.
_TWO_SIDED: dict[int, tuple[SubDetector, SubDetector]] = {
    bank_type: detector.sides for detector in DETECTORS for bank_type in detector.written
}
_ONE_SIDED: dict[int, SubDetector] = {
    # Simulated Rich banks have no field that selects one of the two detectors.
    LhcbBankType.RICH: SubDetector.RICH1,
    LhcbBankType.ECAL_PACKED: SubDetector.ECAL,
    LhcbBankType.HCAL_PACKED: SubDetector.HCAL,
    LhcbBankType.CALO: SubDetector.ECAL,
    LhcbBankType.PLUME: SubDetector.PLUME,
    LhcbBankType.MC_TRACKS: SubDetector.TDET,
}
_VELO_TYPES = frozenset(VELO.written)
ERROR_TYPE = LhcbBankType.DAQ_ERROR_FRAGMENT_MALFORMED
"""Type of the fragment of a source that has several banks in one event."""
ERROR_TYPES = frozenset(int(each) for each in LhcbBankType if each.name.startswith("DAQ_ERROR_"))
"""Types of the banks that a readout board sends in place of data."""


def readout_source_id(bank: RawBank) -> int | None:
    """The Run-3 source id of a bank, or None if no readout board writes such a bank.

    - ODIN is source 0, and so is an error bank in its place.
    - A bank whose source id has top bits keeps it.
    - Simulated banks (no top bits) keep their number. VELO: odd modules are on side A (x > 0), even modules on side C.
      UT, SciFi, Muon: odd numbers go to side A, even numbers to side C; this spreads the load but differs from the
      cabling.
    - Truth banks belong to the test detector: particles by their own number, vertices to number 1024, the
      sample to 1025, the calorimeter to 1026.
    - Trigger results, DAQ and file banks, and simulated banks of unknown type, are not read out.
    """
    return _readout_source_id(bank.type, bank.version >= VeloVersion.SENSOR_PAIRS, bank.source_id)


@lru_cache(maxsize=16384)
def _readout_source_id(bank_type: int, holds_sensor_pair: bool, source: int) -> int | None:
    if bank_type in NOT_READ_OUT:
        return None
    # An error bank in the place of ODIN has its source id, 0: it must not be taken for a simulated bank.
    if bank_type == BankType.ODIN or (bank_type in ERROR_TYPES and source <= MAX_NUMBER):
        return SubDetector.ODIN << NUMBER_BITS
    if source > MAX_NUMBER:
        return source
    if bank_type == LhcbBankType.MC_VERTICES:
        return source_id(SubDetector.TDET, TRUTH_VERTEX_NUMBER)
    if bank_type == LhcbBankType.MC_SAMPLE:
        return source_id(SubDetector.TDET, TRUTH_SAMPLE_NUMBER)
    if bank_type == LhcbBankType.MC_ECAL:
        return source_id(SubDetector.TDET, TRUTH_ECAL_NUMBER)
    sides = _TWO_SIDED.get(bank_type)
    if sides is None:
        subdetector = _ONE_SIDED.get(bank_type)
        return None if subdetector is None else source_id(subdetector, source)
    # A module has four sensors, that is two sensor pairs.
    per_module = (2 if holds_sensor_pair else 4) if bank_type in _VELO_TYPES else 1
    return source_id(sides[source // per_module & 1], source)


def velo_encoding(bank_types: Iterable[int]) -> VeloEncoding:
    """The encoding to read from events with banks of these types: retina clusters if there are any."""
    return "retina" if LhcbBankType.VP_RETINA_CLUSTER in bank_types else "superpixel"
