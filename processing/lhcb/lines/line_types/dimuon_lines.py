"""Lines on vertices of two muons (docs/physics/selection-lines.md)."""

from typing import Any

from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import MIN_PV_Z, Distance, Length, Momentum, Positive
from hltnode.processing.lhcb.lines.inputs.vertex_fields import dimuons
from hltnode.processing.lhcb.lines.line_types.tracks import behind_target
from hltnode.processing.selection.expressions.functions import maximum
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType


def charges(vertex: Any, *, same: bool = False) -> Any:
    """True if the charges of the tracks are opposite, or with `same` equal."""
    return vertex.same_sign if same else ~vertex.same_sign


@dataclass(frozen=True, config=VALIDATED)
class DiMuonMass(LineType):
    """Two muons of opposite charge above a mass; displaced with `min_ip_chi2`."""

    input = dimuons

    min_pt: Momentum = 300.0
    min_p: Momentum = 6000.0
    min_mass: Momentum = 2700.0
    max_doca: Distance = 0.2
    max_chi2: Positive = 25.0
    min_ip_chi2: Positive = 0.0
    min_ip: Distance = 0.0
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            charges(v)
            & (v.min_pt > self.min_pt * MeV)
            & (v.min_p > self.min_p * MeV)
            & (v.m_mumu > self.min_mass * MeV)
            & (v.doca < self.max_doca * mm)
            & (v.chi2 < self.max_chi2)
            & (v.min_ip_chi2 >= self.min_ip_chi2)
            & (v.min_ip >= self.min_ip * mm)
            & behind_target(v, self.min_pv_z)
        )


@dataclass(frozen=True, config=VALIDATED)
class DiMuonSoft(LineType):
    """Two displaced muons of low mass: strange decays."""

    input = dimuons

    below_mass: Momentum = 400.0
    min_mass: Momentum = 475.0
    max_mass: Momentum = 600.0
    min_ip_chi2: Positive = 100.0
    min_rho: Distance = 3.0
    min_z: Length = -375.0
    max_z: Length = 635.0
    max_doca: Distance = 0.1
    max_ip_per_flight: Positive = 0.04
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        window = (v.m_mumu > self.min_mass * MeV) & (v.m_mumu < self.max_mass * MeV)
        return (
            charges(v)
            & ((v.m_mumu < self.below_mass * MeV) | window)
            & (v.min_ip_chi2 > self.min_ip_chi2)
            & (v.rho > self.min_rho * mm)
            & (v.z > self.min_z * mm)
            & (v.z < self.max_z * mm)
            & (v.doca < self.max_doca * mm)
            & v.has_pv
            & (v.ip / v.dz < self.max_ip_per_flight)
            & (v.pv.z > self.min_pv_z * mm)
        )


@dataclass(frozen=True, config=VALIDATED)
class DiMuonNoIP(LineType):
    """Two prompt muons of high pt, of opposite charges or with `same_sign` of equal charges."""

    input = dimuons

    same_sign: bool = False
    min_pt_product: Positive = 1.0
    """GeV²."""
    min_p: Momentum = 5000.0
    min_pt: Momentum = 1000.0
    max_doca: Distance = 0.3
    max_chi2: Positive = 9.0
    max_track_chi2: Positive = 3.0
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            charges(v, same=self.same_sign)
            & (v.track1.pt * v.track2.pt > self.min_pt_product * 1e6 * MeV * MeV)
            & (v.min_p > self.min_p * MeV)
            & (v.pt > self.min_pt * MeV)
            & (v.doca < self.max_doca * mm)
            & (v.chi2 < self.max_chi2)
            & (maximum(v.track1.chi2, v.track2.chi2) < self.max_track_chi2)
            & behind_target(v, self.min_pv_z)
        )


@dataclass(frozen=True, config=VALIDATED)
class DiMuonDrellYan(LineType):
    """Two muons of high momentum, of opposite charges or with `same_sign` of equal charges."""

    input = dimuons

    same_sign: bool = False
    min_p: Momentum = 15000.0
    min_pt: Momentum = 1200.0
    max_eta: Positive = 4.9
    max_doca: Distance = 0.15
    max_chi2: Positive = 16.0
    min_mass: Momentum = 5000.0
    max_mass: Momentum = 250000.0
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            charges(v, same=self.same_sign)
            & (v.min_p > self.min_p * MeV)
            & (v.min_pt > self.min_pt * MeV)
            & (maximum(v.track1.eta, v.track2.eta) < self.max_eta)
            & (v.doca < self.max_doca * mm)
            & (v.chi2 < self.max_chi2)
            & (v.m_mumu > self.min_mass * MeV)
            & (v.m_mumu < self.max_mass * MeV)
            & behind_target(v, self.min_pv_z)
        )


@dataclass(frozen=True, config=VALIDATED)
class DisplacedDiMuon(LineType):
    """Two displaced muons."""

    input = dimuons

    min_pt: Momentum = 500.0
    max_chi2: Positive = 6.0
    min_ip_chi2: Positive = 6.0
    min_eta: Positive = 2.0
    max_eta: Positive = 5.0
    min_mass: Momentum = 0.0
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            charges(v)
            & (v.min_pt > self.min_pt * MeV)
            & (v.chi2 < self.max_chi2)
            & (v.min_ip_chi2 > self.min_ip_chi2)
            & (v.eta > self.min_eta)
            & (v.eta < self.max_eta)
            & (v.m_mumu >= self.min_mass * MeV)
            & behind_target(v, self.min_pv_z)
        )
