"""Raw banks of LHCb by detector: sub-detectors, bank types, versions that are read and versions that are written.

Decoders, kernels, simulation and tests take the numbers from here. docs/formats says what each version holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.subdetectors import SubDetector


class VeloVersion(IntEnum):
    """Of super-pixels (VP) and of retina clusters (VPRetinaCluster)."""

    EIGHTHS = 2
    """A sensor behind a count; centres of retina clusters in eighths of a pixel."""
    QUARTERS = 3
    """A sensor behind a count; centres of retina clusters in quarters of a pixel."""
    SENSOR_PAIRS = 4
    """Two sensors without a count; centres in quarters of a pixel."""


class UtVersion(IntEnum):
    """Of UT banks."""

    CLUSTERS = 3
    STRIPS = 4


class SciFiVersion(IntEnum):
    """Of FTCluster banks."""

    ONE_HIT_PER_WORD = 4
    VERSION_5 = 5
    """Two words can be one cluster; the first piece of a wide one is no hit."""
    VERSION_6 = 6
    """Two words can be one cluster; each piece of a wide one is a hit."""


class MuonVersion(IntEnum):
    """Of Muon banks."""

    BATCHES = 2
    """Addresses of digits in four batches."""
    LINKS = 3
    """Hit maps of links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorBanks:
    """Banks of a detector that is read out in two halves.

    `sides`: C, then A. `written`: by bank type the versions that the simulation writes, the default one first.
    """

    sides: tuple[SubDetector, SubDetector]
    versions: type[IntEnum]
    written: Mapping[LhcbBankType, tuple[IntEnum, ...]]

    @property
    def read_versions(self) -> tuple[int, ...]:
        """Of the banks that are read, ascending."""
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
    written={LhcbBankType.FT_CLUSTER: (SciFiVersion.VERSION_5,)},
)
MUON = DetectorBanks(
    sides=(SubDetector.MUON_C, SubDetector.MUON_A),
    versions=MuonVersion,
    written={LhcbBankType.MUON: (MuonVersion.BATCHES,)},
)

DETECTORS = (VELO, UT, SCIFI, MUON)
