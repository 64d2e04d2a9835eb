"""The whole detector, for the simulation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from hltnode.processing.lhcb.geometry.ecal import EcalGeometry
from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.muon import MuonGeometry
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.geometry.ut import UtGeometry
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.geometry.velo_halves import with_positions


@dataclass(frozen=True, slots=True)
class Detector:
    """Geometry of the tracking detectors, the calorimeter and the muon stations, and the magnet."""

    velo: VeloGeometry
    ut: UtGeometry
    scifi: SciFiGeometry
    ecal: EcalGeometry
    muon: MuonGeometry
    magnet: Magnet

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """All geometry files of a directory. Raises GeometryError, which names the file."""
        return cls(
            VeloGeometry.load(directory),
            UtGeometry.load(directory),
            SciFiGeometry.load(directory),
            EcalGeometry.load(directory),
            MuonGeometry.load(directory),
            Magnet.load(directory),
        )

    @classmethod
    def builtin(cls) -> Self:
        """The ideal detector, computed from figures; the magnet is down."""
        return cls(
            VeloGeometry.builtin(),
            UtGeometry.builtin(),
            SciFiGeometry.builtin(),
            EcalGeometry.builtin(),
            MuonGeometry.builtin(),
            Magnet.builtin(),
        )

    def with_polarity(self, polarity: float | None) -> Self:
        """The same with the magnet down (-1) or up (+1), or as it is (None)."""
        return self if polarity is None else replace(self, magnet=replace(self.magnet, polarity=polarity))

    def with_conditions(self, values: Mapping[str, float]) -> Self:
        """The same with the beam line, the VELO halves and the polarity of conditions, by name; others are ignored."""
        polarity = values.get("magnet_polarity")
        return replace(self.with_polarity(polarity), velo=with_positions(self.velo, values))
