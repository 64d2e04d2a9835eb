"""Lines on vertices of two tracks: heavy flavour, charm, K0S and Λ (docs/physics/selection-lines.md)."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import MIN_PV_Z, Distance, Length, Momentum, Plain, Positive
from hltnode.processing.lhcb.lines.inputs.vertex_fields import displaced_vertices, v0_pairs, v0s
from hltnode.processing.lhcb.lines.line_types.tracks import behind_target
from hltnode.processing.lhcb.lines.line_types.two_track_network import TWO_TRACK_NETWORK
from hltnode.processing.selection.expressions.functions import log, maximum, minimum, sqrt, where
from hltnode.processing.selection.expressions.units import GeV, MeV, mm
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType

D0_MASS = 1864.84
"""MeV; Particle Data Group."""

Response = Annotated[float, Field(ge=0.0, le=1.0)]


def network_response(vertex: Any) -> Any:
    """The response of the network of TwoTrackMVA."""
    v = vertex
    return TWO_TRACK_NETWORK.response([log(v.fd_chi2), v.sum_pt / GeV, maximum(v.chi2, 1e-10), log(v.min_ip_chi2)])


def cosine_between(first: Any, second: Any) -> Any:
    """The cosine of the angle between two tracks."""
    product = first.tx * second.tx + first.ty * second.ty + 1.0
    lengths = (first.tx**2 + first.ty**2 + 1.0) * (second.tx**2 + second.ty**2 + 1.0)
    return product / sqrt(lengths)


@dataclass(frozen=True, config=VALIDATED)
class TwoTrackMVA(LineType):
    """Two displaced tracks of a heavy-flavour decay, by a monotone network."""

    input = displaced_vertices

    min_response: Response = 0.9569
    min_track_pt: Momentum = 200.0
    min_pt: Momentum = 1000.0
    min_eta: Positive = 2.0
    max_eta: Positive = 5.0
    min_corrected_mass: Momentum = 1000.0
    max_chi2: Positive = 20.0
    max_doca: Distance = 0.2
    min_ip_chi2: Positive = 4.0
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            (v.min_pt > self.min_track_pt * MeV)
            & (v.pt > self.min_pt * MeV)
            & (v.eta > self.min_eta)
            & (v.eta < self.max_eta)
            & (v.m_corr > self.min_corrected_mass * MeV)
            & (v.chi2 < self.max_chi2)
            & (v.doca < self.max_doca * mm)
            & (v.min_ip_chi2 > self.min_ip_chi2)
            & v.has_pv
            & (v.pv.z > self.min_pv_z * mm)
            & (network_response(v) > self.min_response)
        )


@dataclass(frozen=True, config=VALIDATED)
class TwoTrackMVACharmXSec(LineType):
    """Two displaced tracks of a charm decay, for cross sections: looser, with a mass below that of D0 and Kπ."""

    input = displaced_vertices

    min_response_low_pt: Response = 0.7
    min_response_high_pt: Response = 0.92385
    border_pt: Momentum = 1500.0
    min_track_pt: Momentum = 250.0
    min_track_p: Momentum = 2000.0
    min_ip_chi2: Positive = 4.0
    max_chi2: Positive = 20.0
    max_doca: Distance = 0.2
    mass_window: Momentum = 100.0
    max_combination_mass: Momentum = 1830.0
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        needed = where(v.pt > self.border_pt * MeV, self.min_response_high_pt, self.min_response_low_pt)
        d0 = minimum(abs(v.m_kpi - D0_MASS * MeV), abs(v.m_pik - D0_MASS * MeV)) < self.mass_window * MeV
        partial = minimum(v.m_kpi, v.m_pik) < self.max_combination_mass * MeV
        return (
            (v.min_pt > self.min_track_pt * MeV)
            & (v.min_p > self.min_track_p * MeV)
            & (v.min_ip_chi2 > self.min_ip_chi2)
            & (v.chi2 < self.max_chi2)
            & (v.doca < self.max_doca * mm)
            & (d0 | partial)
            & v.has_pv
            & (v.pv.z > self.min_pv_z * mm)
            & (network_response(v) > needed)
        )


def _d0_mass(mass: Callable[[Any], Any]) -> Histogram:
    low, high = D0_MASS - 100.0, D0_MASS + 100.0
    return Histogram("mass", mass, 50, low * MeV, high * MeV, description="mass of the D0 candidates")


def _nearest(one: Any, other: Any) -> Any:
    """The mass that is closer to the D0 mass."""
    return where(abs(one - D0_MASS * MeV) < abs(other - D0_MASS * MeV), one, other)


@dataclass(frozen=True, config=VALIDATED)
class D2KK(LineType):
    """D0 to two kaons."""

    input = displaced_vertices
    histograms = (_d0_mass(lambda v: v.m_kk),)

    min_pt: Momentum = 2000.0
    min_track_pt: Momentum = 800.0
    min_track_ip: Distance = 0.06
    max_chi2: Positive = 20.0
    max_doca: Distance = 0.2
    min_eta: Positive = 2.0
    max_eta: Positive = 5.0
    mass_window: Momentum = 100.0
    min_pv_z: Length = MIN_PV_Z

    def masses(self, vertex: Any) -> tuple[Any, ...]:
        """The masses under the hypotheses of the line."""
        return (vertex.m_kk,)

    def selects(self, candidate: Any) -> Any:
        v = candidate
        distances = [abs(mass - D0_MASS * MeV) for mass in self.masses(v)]
        nearest = distances[0] if len(distances) == 1 else minimum(*distances)
        return (
            (v.pt > self.min_pt * MeV)
            & (v.min_pt > self.min_track_pt * MeV)
            & (v.min_ip > self.min_track_ip * mm)
            & (v.chi2 < self.max_chi2)
            & (v.doca < self.max_doca * mm)
            & (v.eta > self.min_eta)
            & (v.eta < self.max_eta)
            & ~v.same_sign
            & (nearest < self.mass_window * MeV)
            & behind_target(v, self.min_pv_z)
        )


@dataclass(frozen=True, config=VALIDATED)
class D2KPi(D2KK):
    """D0 to a kaon and a pion."""

    histograms = (_d0_mass(lambda v: _nearest(v.m_kpi, v.m_pik)),)

    def masses(self, vertex: Any) -> tuple[Any, ...]:
        return (vertex.m_kpi, vertex.m_pik)


@dataclass(frozen=True, config=VALIDATED)
class D2PiPi(D2KK):
    """D0 to two pions."""

    histograms = (_d0_mass(lambda v: v.m_pipi),)

    def masses(self, vertex: Any) -> tuple[Any, ...]:
        return (vertex.m_pipi,)


@dataclass(frozen=True, config=VALIDATED)
class KsToPiPi(LineType):
    """K0S to two pions."""

    input = v0s
    histograms = (Histogram("mass", lambda v: v.m_pipi, 50, 400 * MeV, 600 * MeV, description="K0S to two pions"),)

    min_ip_chi2: Positive = 100.0
    max_chi2: Positive = 10.0
    max_ip: Distance = 0.3
    min_mass: Momentum = 400.0
    max_mass: Momentum = 600.0
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            v.is_ks
            & (v.min_ip_chi2 > self.min_ip_chi2)
            & (v.chi2 < self.max_chi2)
            & (v.ip < self.max_ip * mm)
            & (v.m_pipi > self.min_mass * MeV)
            & (v.m_pipi < self.max_mass * MeV)
            & behind_target(v, self.min_pv_z)
        )


def good_ks(vertex: Any, cuts: "TwoTrackKs | TwoKs") -> Any:
    """The common cuts of both lines on K0S of high pt."""
    v = vertex
    return (
        v.is_ks
        & (v.chi2 < cuts.max_chi2)
        & (v.pt > cuts.min_pt * MeV)
        & (v.dira > cuts.min_dira)
        & (v.eta > cuts.min_eta)
        & (v.eta < cuts.max_eta)
        & (v.min_pt > cuts.min_track_pt * MeV)
        & (v.min_p > cuts.min_track_p * MeV)
        & (v.min_ip_chi2 > cuts.min_ip_chi2)
        & (v.m_pipi > cuts.min_mass * MeV)
        & (v.m_pipi < cuts.max_mass * MeV)
        & (cosine_between(v.track1, v.track2) > cuts.min_cos_opening)
        & (v.track1.ip * v.track2.ip / v.ip > cuts.min_combined_ip * mm)
        & behind_target(v, cuts.min_pv_z)
    )


@dataclass(frozen=True, config=VALIDATED)
class TwoTrackKs(LineType):
    """K0S of high pt to two pions.

    `min_combined_ip` (mm): product of the impact parameters of the pions divided by that of the K0S.
    """

    input = v0s

    max_chi2: Positive = 20.0
    min_pt: Momentum = 2500.0
    min_dira: Plain = 0.99
    min_eta: Positive = 2.0
    max_eta: Positive = 4.2
    min_track_pt: Momentum = 470.0
    min_track_p: Momentum = 5000.0
    min_ip_chi2: Positive = 50.0
    min_mass: Momentum = 455.0
    max_mass: Momentum = 545.0
    min_cos_opening: Plain = 0.99
    min_combined_ip: Distance = 0.72
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        return good_ks(candidate, self)


@dataclass(frozen=True, config=VALIDATED)
class TwoKs(LineType):
    """Two K0S, each to two pions, both with cuts like those of TwoTrackKs."""

    input = v0_pairs

    max_chi2: Positive = 20.0
    min_pt: Momentum = 1150.0
    min_dira: Plain = 0.99
    min_eta: Positive = 2.0
    max_eta: Positive = 4.2
    min_track_pt: Momentum = 425.0
    min_track_p: Momentum = 3000.0
    min_ip_chi2: Positive = 15.0
    min_mass: Momentum = 455.0
    max_mass: Momentum = 545.0
    min_cos_opening: Plain = 0.99
    min_combined_ip: Distance = 0.23
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        return good_ks(candidate.first, self) & good_ks(candidate.second, self)


@dataclass(frozen=True, config=VALIDATED)
class L02PPi(LineType):
    """Λ to a proton and a pion: the track of higher momentum is the proton."""

    input = v0s
    histograms = (
        Histogram(
            "mass",
            lambda v: where(v.track1.p > v.track2.p, v.m_ppi, v.m_pip),
            *(50, 1080 * MeV, 1140 * MeV),
            description="Λ to a proton and a pion",
        ),
    )

    min_proton_ip_chi2: Positive = 12.0
    min_proton_ip: Distance = 0.08
    min_proton_pt: Momentum = 450.0
    min_pion_ip_chi2: Positive = 32.0
    min_pion_ip: Distance = 0.2
    min_pion_pt: Momentum = 80.0
    max_doca: Distance = 0.5
    min_pt: Momentum = 500.0
    max_mass: Momentum = 1140.0
    max_chi2: Positive = 16.0
    min_z: Length = -80.0
    max_z: Length = 650.0
    min_flight_chi2: Positive = 180.0
    min_flight_z: Length = 12.0
    min_rho: Distance = 2.0
    min_dira: Plain = 0.9997
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        v = candidate
        first_is_proton = v.track1.p > v.track2.p

        def cuts(proton: Any, pion: Any) -> Any:
            return (
                (proton.ip_chi2 > self.min_proton_ip_chi2)
                & (proton.ip > self.min_proton_ip * mm)
                & (proton.pt > self.min_proton_pt * MeV)
                & (pion.ip_chi2 > self.min_pion_ip_chi2)
                & (pion.ip > self.min_pion_ip * mm)
                & (pion.pt > self.min_pion_pt * MeV)
            )

        return (
            v.is_lambda
            & where(first_is_proton, cuts(v.track1, v.track2), cuts(v.track2, v.track1))
            & (v.doca < self.max_doca * mm)
            & (v.pt > self.min_pt * MeV)
            & (where(first_is_proton, v.m_ppi, v.m_pip) < self.max_mass * MeV)
            & (v.chi2 < self.max_chi2)
            & (v.z > self.min_z * mm)
            & (v.z < self.max_z * mm)
            & (v.rho > self.min_rho * mm)
            & v.has_pv
            & (v.fd_chi2 > self.min_flight_chi2)
            & (v.dz > self.min_flight_z * mm)
            & (v.dira > self.min_dira)
            & (v.pv.z > self.min_pv_z * mm)
        )
