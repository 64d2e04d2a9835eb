"""Lines on collisions of a beam with the gas target SMOG2 (docs/physics/selection-lines.md).

Their candidates come from a primary vertex upstream of the collisions of both beams.
"""

from typing import Any

from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import MIN_PV_Z, Distance, Length, Momentum, Positive
from hltnode.processing.lhcb.lines.inputs.vertex_fields import displaced_vertices
from hltnode.processing.lhcb.lines.line_types.dimuon_lines import DiMuonMass, DisplacedDiMuon
from hltnode.processing.lhcb.lines.line_types.tracks import SingleHighPtMuon, SingleHighPtTrack
from hltnode.processing.lhcb.lines.line_types.two_tracks import D0_MASS, KsToPiPi, L02PPi
from hltnode.processing.selection.expressions.functions import maximum, minimum
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType

MIN_GAS_Z, MAX_GAS_Z = -541.0, MIN_PV_Z
"""mm: the region of primary vertices upstream of the collisions of both beams."""


def from_gas(candidate: Any, min_pv_z: float, max_pv_z: float) -> Any:
    """True if the primary vertex of a candidate lies in the gas."""
    return candidate.has_pv & (candidate.pv.z > min_pv_z * mm) & (candidate.pv.z < max_pv_z * mm)


@dataclass(frozen=True, config=VALIDATED)
class GasD2KPi(LineType):
    """D0 from the gas to a kaon and a pion."""

    input = displaced_vertices

    min_track_pt: Momentum = 500.0
    min_either_pt: Momentum = 800.0
    min_ip_chi2: Positive = 7.0
    min_fd_chi2: Positive = 25.0
    mass_window: Momentum = 100.0
    min_pv_z: Length = MIN_GAS_Z
    max_pv_z: Length = MAX_GAS_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        nearest = minimum(abs(v.m_kpi - D0_MASS * MeV), abs(v.m_pik - D0_MASS * MeV))
        return (
            ~v.same_sign
            & (v.min_pt > self.min_track_pt * MeV)
            & (maximum(v.track1.pt, v.track2.pt) > self.min_either_pt * MeV)
            & (v.min_ip_chi2 > self.min_ip_chi2)
            & (v.fd_chi2 > self.min_fd_chi2)
            & (nearest < self.mass_window * MeV)
            & from_gas(v, self.min_pv_z, self.max_pv_z)
        )


@dataclass(frozen=True, config=VALIDATED)
class GasTwoTracks(LineType):
    """Two displaced tracks of opposite charge from the gas, above a mass as two pions."""

    input = displaced_vertices

    min_track_pt: Momentum = 500.0
    min_ip_chi2: Positive = 7.0
    max_chi2: Positive = 25.0
    min_mass: Momentum = 1300.0
    min_pv_z: Length = MIN_GAS_Z
    max_pv_z: Length = MAX_GAS_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            ~v.same_sign
            & (v.min_pt > self.min_track_pt * MeV)
            & (v.min_ip_chi2 > self.min_ip_chi2)
            & (v.chi2 < self.max_chi2)
            & (v.m_pipi > self.min_mass * MeV)
            & from_gas(v, self.min_pv_z, self.max_pv_z)
        )


@dataclass(frozen=True, config=VALIDATED)
class GasKsToPiPi(KsToPiPi):
    """K0S from the gas to two pions."""

    min_pv_z: Length = MIN_GAS_Z
    max_pv_z: Length = MAX_GAS_Z

    def selects(self, candidate: Any) -> Any:
        return KsToPiPi.selects(self, candidate) & from_gas(candidate, self.min_pv_z, self.max_pv_z)


@dataclass(frozen=True, config=VALIDATED)
class GasL02PPi(L02PPi):
    """Λ from the gas to a proton and a pion: the track of higher momentum is the proton."""

    min_z: Length = -500.0
    min_pv_z: Length = MIN_GAS_Z
    max_pv_z: Length = MAX_GAS_Z

    def selects(self, candidate: Any) -> Any:
        return L02PPi.selects(self, candidate) & from_gas(candidate, self.min_pv_z, self.max_pv_z)


@dataclass(frozen=True, config=VALIDATED)
class GasTrack(SingleHighPtTrack):
    """A track of high pt from the gas."""

    max_chi2: Positive = 2.5
    min_pt: Momentum = 3000.0
    min_p: Momentum = 3000.0
    min_pv_z: Length = MIN_GAS_Z
    max_pv_z: Length = MAX_GAS_Z

    def selects(self, candidate: Any) -> Any:
        return SingleHighPtTrack.selects(self, candidate) & from_gas(candidate, self.min_pv_z, self.max_pv_z)


@dataclass(frozen=True, config=VALIDATED)
class GasMuon(SingleHighPtMuon):
    """A muon from the gas."""

    min_pt: Momentum = 1250.0
    min_p: Momentum = 3000.0
    min_pv_z: Length = MIN_GAS_Z
    max_pv_z: Length = MAX_GAS_Z

    def selects(self, candidate: Any) -> Any:
        return SingleHighPtMuon.selects(self, candidate) & from_gas(candidate, self.min_pv_z, self.max_pv_z)


@dataclass(frozen=True, config=VALIDATED)
class GasDiMuonMass(DiMuonMass):
    """Two muons of opposite charge from the gas, above a mass."""

    min_pt: Momentum = 500.0
    min_p: Momentum = 3000.0
    max_doca: Distance = 0.5
    min_pv_z: Length = MIN_GAS_Z
    max_pv_z: Length = MAX_GAS_Z

    def selects(self, candidate: Any) -> Any:
        return DiMuonMass.selects(self, candidate) & from_gas(candidate, self.min_pv_z, self.max_pv_z)


@dataclass(frozen=True, config=VALIDATED)
class GasDisplacedDiMuon(DisplacedDiMuon):
    """Two displaced muons from the gas with a significant flight."""

    min_fd_chi2: Positive = 100.0
    min_pv_z: Length = MIN_GAS_Z
    max_pv_z: Length = MAX_GAS_Z

    def selects(self, candidate: Any) -> Any:
        in_gas = from_gas(candidate, self.min_pv_z, self.max_pv_z)
        return DisplacedDiMuon.selects(self, candidate) & (candidate.fd_chi2 > self.min_fd_chi2) & in_gas
