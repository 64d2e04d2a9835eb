"""Lines on electrons; their momenta include bremsstrahlung (docs/physics/selection-lines.md)."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import MIN_PV_Z, Count, Distance, Length, Momentum, Positive
from hltnode.processing.lhcb.lines.inputs.calorimeter_fields import dielectrons, ecal_clusters
from hltnode.processing.lhcb.lines.inputs.event_fields import event
from hltnode.processing.lhcb.lines.inputs.track_fields import electrons, long_tracks
from hltnode.processing.lhcb.lines.line_types.tracks import TrackMVA, behind_target
from hltnode.processing.selection.expressions.functions import maximum
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.inputs import count_of
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType


@dataclass(frozen=True, config=VALIDATED)
class TrackElectronMVA(TrackMVA):
    """A displaced electron, with the cuts of TrackMVA on its pt with bremsstrahlung."""

    input = electrons

    min_pt: Momentum = 1000.0
    alpha: Annotated[float, Field(ge=-1e5, le=1e5)] = 0.0
    param2: Positive = 1000.0
    min_ip_chi2: Annotated[float, Field(gt=0.0, le=1e9)] = 3.0

    def pt_of(self, track: Any) -> Any:
        """The transverse momentum with bremsstrahlung."""
        return track.brem_pt


@dataclass(frozen=True, config=VALIDATED)
class SingleHighPtElectron(LineType):
    """An electron of high pt."""

    input = electrons

    max_chi2: Positive = 100.0
    min_pt: Momentum = 6000.0
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        t = candidate
        return (t.chi2 < self.max_chi2) & (t.brem_pt > self.min_pt * MeV) & behind_target(t, self.min_pv_z)


@dataclass(frozen=True, config=VALIDATED)
class DisplacedLeptons(LineType):
    """Events with at least `min_leptons` displaced electrons and muons."""

    input = event

    min_leptons: Count = 2
    min_pt: Momentum = 1000.0
    min_ip_chi2: Positive = 7.4
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:  # noqa: ARG002
        def is_good(t: Any) -> Any:
            electron = t.is_electron & (t.brem_pt > self.min_pt * MeV)
            muon = t.is_muon & (t.pt > self.min_pt * MeV)
            return (electron | muon) & (t.ip_chi2 > self.min_ip_chi2) & behind_target(t, self.min_pv_z)

        return count_of(long_tracks, is_good) >= self.min_leptons


@dataclass(frozen=True, config=VALIDATED)
class SingleHighEt(LineType):
    """A cluster of the calorimeter with a high transverse energy."""

    input = ecal_clusters

    min_et: Momentum = 15000.0

    def selects(self, candidate: Any) -> Any:
        return candidate.et > self.min_et * MeV


@dataclass(frozen=True, config=VALIDATED)
class DisplacedDielectron(LineType):
    """Two displaced electrons of any charge."""

    input = dielectrons

    min_pt: Momentum = 500.0
    min_ip_chi2: Positive = 7.4
    max_doca: Distance = 0.082
    max_chi2: Positive = 7.4
    min_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            (v.min_pt > self.min_pt * MeV)
            & (v.min_ip_chi2 > self.min_ip_chi2)
            & (v.doca < self.max_doca * mm)
            & (v.chi2 < self.max_chi2)
            & (v.z > self.min_z * mm)
        )


def _of_charges(pair: Any, *, same: bool) -> Any:
    return pair.same_sign if same else ~pair.same_sign


@dataclass(frozen=True, config=VALIDATED)
class LowMassNoipDielectron(LineType):
    """Two electrons of low mass, prompt or with `displaced` displaced.

    A pair is displaced if the IP chi2 of both electrons is above `border_ip_chi2`, prompt if one is below.
    """

    input = dielectrons
    histograms = (
        Histogram("mass", lambda v: v.mass, 60, 0 * MeV, 300 * MeV, description="mass of two electrons of low mass"),
    )

    displaced: bool = False
    same_sign: bool = False
    min_mass: Momentum = 5.0
    max_mass: Momentum = 300.0
    border_ip_chi2: Positive = 2.0
    min_track_pt: Momentum = 500.0
    min_sum_pt: Momentum = 1000.0
    max_doca: Distance = 0.082
    max_chi2: Positive = 7.4
    min_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        of_kind = v.min_ip_chi2 > self.border_ip_chi2 if self.displaced else v.min_ip_chi2 < self.border_ip_chi2
        return (
            _of_charges(v, same=self.same_sign)
            & (v.mass > self.min_mass * MeV)
            & (v.mass < self.max_mass * MeV)
            & of_kind
            & (v.min_pt > self.min_track_pt * MeV)
            & (v.sum_pt > self.min_sum_pt * MeV)
            & (v.doca < self.max_doca * mm)
            & (v.chi2 < self.max_chi2)
            & (v.z > self.min_z * mm)
        )


@dataclass(frozen=True, config=VALIDATED)
class DiElectronLowMass(LineType):
    """Two electrons of low mass, identified by the electron network, of opposite or with `same_sign` of equal charges.

    `min_ip_chi2` -1: of any displacement.
    """

    input = dielectrons
    histograms = (
        Histogram("mass", lambda v: v.mass, 60, 0 * MeV, 300 * MeV, description="mass of two electrons of low mass"),
    )

    same_sign: bool = False
    min_electron_nn: Annotated[float, Field(ge=0.0, le=1.0)] = 0.73
    min_ip_chi2: Annotated[float, Field(ge=-1.0, le=1e9)] = -1.0
    min_mass: Momentum = 5.0
    max_mass: Momentum = 300.0
    min_track_pt: Momentum = 500.0
    min_sum_pt: Momentum = 1000.0
    max_doca: Distance = 0.082
    max_chi2: Positive = 7.4
    min_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            _of_charges(v, same=self.same_sign)
            & (v.min_electron_nn > self.min_electron_nn)
            & (v.min_ip_chi2 > self.min_ip_chi2)
            & (v.mass > self.min_mass * MeV)
            & (v.mass < self.max_mass * MeV)
            & (v.min_pt > self.min_track_pt * MeV)
            & (v.sum_pt > self.min_sum_pt * MeV)
            & (v.doca < self.max_doca * mm)
            & (v.chi2 < self.max_chi2)
            & (v.z > self.min_z * mm)
        )


@dataclass(frozen=True, config=VALIDATED)
class DiElectronHighMass(LineType):
    """Two electrons of high mass, of opposite charges or with `same_sign` of equal charges."""

    input = dielectrons

    same_sign: bool = False
    min_p: Momentum = 14000.0
    min_pt: Momentum = 1500.0
    max_eta: Positive = 5.0
    min_mass: Momentum = 8000.0
    max_mass: Momentum = 140000.0
    max_doca: Distance = 0.2
    min_z: Length = -330.0

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            _of_charges(v, same=self.same_sign)
            & (v.min_p > self.min_p * MeV)
            & (v.min_pt > self.min_pt * MeV)
            & (maximum(v.track1.eta, v.track2.eta) <= self.max_eta)
            & (v.mass > self.min_mass * MeV)
            & (v.mass < self.max_mass * MeV)
            & (v.doca <= self.max_doca * mm)
            & (v.z >= self.min_z * mm)
        )


def sin2_between(first: Any, second: Any) -> Any:
    """The squared sine of the angle between two tracks, exact for small angles."""
    dx, dy = first.tx - second.tx, first.ty - second.ty
    dz = first.ty * dx - first.tx * dy
    lengths = (first.tx**2 + first.ty**2 + 1.0) * (second.tx**2 + second.ty**2 + 1.0)
    return (dx * dx + dy * dy + dz * dz) / lengths


@dataclass(frozen=True, config=VALIDATED)
class DiElectronSoft(LineType):
    """Two displaced electrons of low mass from a decay far from the beam, outside of the mass of K0S to two pions.

    `min_sin2`: squared sine of the angle between the electrons, against tracks that were found twice.
    """

    input = dielectrons

    veto_from: Momentum = 483.0
    veto_to: Momentum = 513.0
    max_mass: Momentum = 800.0
    min_track_ip: Distance = 1.4
    min_rho: Distance = 3.0
    min_z: Length = -375.0
    max_z: Length = 635.0
    max_doca: Distance = 0.1
    max_ip_per_flight: Positive = 0.0045
    min_sin2: Positive = 4e-6

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            ~v.same_sign
            & ((v.m_pipi < self.veto_from * MeV) | (v.m_pipi > self.veto_to * MeV))
            & (v.mass < self.max_mass * MeV)
            & (v.min_ip >= self.min_track_ip * mm)
            & (v.rho > self.min_rho * mm)
            & (v.z > self.min_z * mm)
            & (v.z < self.max_z * mm)
            & (v.doca < self.max_doca * mm)
            & v.has_pv
            & (v.ip / v.dz < self.max_ip_per_flight)
            & (sin2_between(v.track1, v.track2) > self.min_sin2)
        )
