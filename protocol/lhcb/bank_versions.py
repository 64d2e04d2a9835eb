"""Raw banks of LHCb by detector: sub-detectors, bank types, readable and written versions.

Decoders, kernels, simulation and tests use these numbers. docs/formats describes each version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.subdetectors import SubDetector


class VeloVersion(IntEnum):
    """Versions of banks of super-pixels (VP) and retina clusters (VPRetinaCluster)."""

    EIGHTHS = 2
    """A count, then one sensor; centres of retina clusters in eighths of a pixel."""
    QUARTERS = 3
    """A count, then one sensor; centres of retina clusters in quarters of a pixel."""
    SENSOR_PAIRS = 4
    """Two sensors without a count; centres in quarters of a pixel."""


class UtVersion(IntEnum):
    """Versions of UT banks."""

    CLUSTERS = 3
    STRIPS = 4


class SciFiVersion(IntEnum):
    """Versions of FTCluster banks."""

    ONE_HIT_PER_WORD = 4
    VERSION_5 = 5
    """Two words can be one cluster; the first piece of a wide cluster is not a hit."""
    VERSION_6 = 6
    """Two words can be one cluster; each piece of a wide cluster is a hit."""
    VERSION_7 = 7
    """As version 8, but the first piece of a wide cluster has fraction 0."""
    VERSION_8 = 8
    """As version 6; links and words in any order, the geometry lists the SiPM of each link."""


SCIFI_OF_LINKS = (SciFiVersion.VERSION_7, SciFiVersion.VERSION_8)
"""Versions whose channels come from a list of SiPMs; those of earlier versions count from the first one of a bank."""


class MuonVersion(IntEnum):
    """Versions of Muon banks."""

    BATCHES = 2
    """Addresses of digits in four batches."""
    LINKS = 3
    """Hit maps of links."""


class EcalVersion(IntEnum):
    """Versions of the banks of the electromagnetic calorimeter: EcalPacked (type 21) and Calo (type 77)."""

    CARDS = 2
    """EcalPacked: cards with their codes, values of 4 or 12 bits."""
    BIG_ENDIAN = 4
    """Calo: three boards, all values of 12 bits, in big-endian words."""
    LITTLE_ENDIAN = 5
    """The same in little-endian words."""


class PlumeVersion(IntEnum):
    """Versions of Plume banks."""

    CHANNELS = 1
    """Over-threshold bits and ADC values of 64 channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorBanks:
    """Banks of a detector with two readout halves.

    `sides`: C, then A. `written`: versions that the simulation writes, by bank type, the default version first.
    """

    sides: tuple[SubDetector, SubDetector]
    versions: type[IntEnum]
    written: Mapping[LhcbBankType, tuple[IntEnum, ...]]

    @property
    def read_versions(self) -> tuple[int, ...]:
        """Readable versions, ascending."""
        return tuple(int(version) for version in self.versions)


VELO = DetectorBanks(
    sides=(SubDetector.VELO_C, SubDetector.VELO_A),
    versions=VeloVersion,
    written={
        LhcbBankType.VP: (VeloVersion.EIGHTHS, VeloVersion.QUARTERS, VeloVersion.SENSOR_PAIRS),
        LhcbBankType.VP_RETINA_CLUSTER: (VeloVersion.QUARTERS, VeloVersion.SENSOR_PAIRS),
    },
)
UT = DetectorBanks(
    sides=(SubDetector.UT_C, SubDetector.UT_A),
    versions=UtVersion,
    written={LhcbBankType.UT: (UtVersion.CLUSTERS, UtVersion.STRIPS)},
)
SCIFI = DetectorBanks(
    sides=(SubDetector.SCIFI_C, SubDetector.SCIFI_A),
    versions=SciFiVersion,
    written={LhcbBankType.FT_CLUSTER: (SciFiVersion.VERSION_5, *SCIFI_OF_LINKS)},
)
MUON = DetectorBanks(
    sides=(SubDetector.MUON_C, SubDetector.MUON_A),
    versions=MuonVersion,
    written={LhcbBankType.MUON: (MuonVersion.BATCHES, MuonVersion.LINKS)},
)

DETECTORS = (VELO, UT, SCIFI, MUON)

ECAL_VERSIONS: Mapping[LhcbBankType, tuple[EcalVersion, ...]] = {
    LhcbBankType.ECAL_PACKED: (EcalVersion.CARDS,),
    LhcbBankType.CALO: (EcalVersion.BIG_ENDIAN, EcalVersion.LITTLE_ENDIAN),
}
"""Readable versions of the electromagnetic calorimeter, which has one readout half, by bank type."""
