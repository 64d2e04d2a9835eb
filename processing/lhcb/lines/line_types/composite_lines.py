"""Lines on decays into more than two tracks (docs/physics/composites.md).

The composites have loose, fixed cuts that keep their lists short. A configuration changes the cuts of the lines.
"""

from typing import Any

from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import Distance, Momentum, Plain, Positive
from hltnode.processing.lhcb.lines.inputs.calorimeter_fields import dielectrons
from hltnode.processing.lhcb.lines.inputs.composite_inputs import composite, mass_of
from hltnode.processing.lhcb.lines.inputs.track_fields import long_tracks, muons
from hltnode.processing.lhcb.lines.inputs.vertex_fields import dimuons, displaced_vertices, v0s
from hltnode.processing.lhcb.lines.line_types.two_tracks import D0_MASS
from hltnode.processing.selection.expressions.functions import minimum, where
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType

MUON_MASS, PION_MASS, KAON_MASS = 105.6584 * MeV, 139.5704 * MeV, 493.677 * MeV
KS_MASS, LAMBDA_MASS, PHI_MASS = 497.611 * MeV, 1115.683 * MeV, 1019.461 * MeV
DSTAR_SPLITTING, D_PLUS_MASS, TAU_MASS = 145.426, 1869.66, 1776.93
XI_MASS, OMEGA_MASS = 1321.71, 1672.45
"""Particle Data Group; MeV where the unit is not given."""


def _d0_mass_of(v: Any) -> Any:
    """The mass of a kaon and a pion that is closer to that of the D0."""
    return where(abs(v.m_kpi - D0_MASS * MeV) < abs(v.m_pik - D0_MASS * MeV), v.m_kpi, v.m_pik)


def _opposite(v: Any, t: Any) -> Any:
    """True if a third track has the charge opposite to the equal charges of a vertex: each triple of tracks with a
    total charge of one has one such vertex."""
    return v.same_sign & ((v.track1.is_positive & ~t.is_positive) | (~v.track1.is_positive & t.is_positive))


def _v0_mass_of(v: Any) -> Any:
    return where(v.is_ks, KS_MASS, LAMBDA_MASS)


def _omega_mass(v: Any, t: Any) -> Any:
    return mass_of(v, t, (LAMBDA_MASS, KAON_MASS))


displaced_pions = long_tracks.those("displaced tracks", "long tracks that miss their vertex", lambda t: t.ip_chi2 > 6)

dstars = composite(
    "dstar",
    displaced_vertices.those(
        "D0",
        "vertices with the mass of a D0",
        lambda v: (
            ~v.same_sign
            & (v.pt > 1500 * MeV)
            & (v.min_pt > 250 * MeV)
            & (abs(_d0_mass_of(v) - D0_MASS * MeV) < 100 * MeV)
        ),
    ),
    long_tracks.those("slow pions", "tracks of low pt", lambda t: (t.pt > 100 * MeV) & (t.pt < 3000 * MeV)),
    masses=(_d0_mass_of, PION_MASS),
    where=lambda d, _t, both: (both.doca < 0.5 * mm) & (both.mass - _d0_mass_of(d) < 165 * MeV),
    description="D0 and a slow pion",
)
three_body_charm = composite(
    "d2khh",
    displaced_vertices.those(
        "pairs of pions", "displaced vertices of equal charges", lambda v: v.same_sign & (v.min_pt > 250 * MeV)
    ),
    displaced_pions.those("kaons", "displaced tracks of pt above 250 MeV", lambda t: t.pt > 250 * MeV),
    masses=(lambda v: v.m_pipi, KAON_MASS),
    decays_at_first=True,
    where=lambda v, t, both: (
        _opposite(v, t) & (both.doca < 0.2 * mm) & (abs(both.mass - D_PLUS_MASS * MeV) < 100 * MeV) & (both.chi2 < 25)
    ),
    description="kaon and two pions of the opposite charge from one vertex",
)
three_muons = composite(
    "tau3mu",
    dimuons.those("dimuons of equal charges", "vertices of two muons of equal charges", lambda v: v.same_sign),
    muons,
    masses=(lambda v: v.m_mumu, MUON_MASS),
    decays_at_first=True,
    where=lambda v, t, both: _opposite(v, t) & (both.doca < 0.3 * mm) & (both.mass < 2500 * MeV) & (both.chi2 < 50),
    description="three muons of total charge one from one vertex",
)
phi_muons = composite(
    "phimu",
    displaced_vertices.those(
        "φ", "displaced vertices with the mass of a φ", lambda v: ~v.same_sign & (abs(v.m_kk - PHI_MASS) < 25 * MeV)
    ),
    muons,
    masses=(lambda v: v.m_kk, MUON_MASS),
    decays_at_first=True,
    where=lambda _v, _t, both: (both.doca < 0.2 * mm) & (both.mass < 2500 * MeV) & (both.chi2 < 25),
    description="φ and a muon from one vertex",
)
kaons_to_pimumu = composite(
    "k2pimumu",
    dimuons.those("light dimuons", "dimuons below 360 MeV", lambda v: ~v.same_sign & (v.m_mumu < 360 * MeV)),
    displaced_pions,
    masses=(lambda v: v.m_mumu, PION_MASS),
    decays_at_first=True,
    where=lambda _v, _t, both: (both.doca < 0.3 * mm) & (both.mass < 600 * MeV),
    description="pion and two muons from one vertex",
)
kaons_to_piee = composite(
    "k2piee",
    dielectrons.those("light dielectrons", "dielectrons below 360 MeV", lambda v: ~v.same_sign & (v.mass < 360 * MeV)),
    displaced_pions,
    masses=(lambda v: v.mass, PION_MASS),
    decays_at_first=True,
    where=lambda _v, _t, both: (both.doca < 0.3 * mm) & (both.mass < 600 * MeV),
    description="pion and two electrons from one vertex",
)
kaons_to_3pi = composite(
    "k23pi",
    displaced_vertices.those(
        "light pairs", "displaced vertices of equal charges", lambda v: v.same_sign & (v.m_pipi < 360 * MeV)
    ),
    displaced_pions,
    masses=(lambda v: v.m_pipi, PION_MASS),
    decays_at_first=True,
    where=lambda v, t, both: _opposite(v, t) & (both.doca < 0.3 * mm) & (both.mass < 600 * MeV),
    description="three pions from one vertex",
)
v0_tracks = composite(
    "v0track",
    v0s,
    displaced_pions.those("tracks of pt above 200 MeV", "displaced tracks", lambda t: t.pt > 200 * MeV),
    masses=(_v0_mass_of, PION_MASS),
    where=lambda v, _t, both: (both.doca < 0.3 * mm) & (both.pt > 1000 * MeV) & (both.vertex.z < v.z),
    description="V0 and a displaced track",
)
cascades = composite(
    "cascade",
    v0s.those("Λ", "candidates of Λ", lambda v: v.is_lambda),
    displaced_pions,
    masses=(LAMBDA_MASS, PION_MASS),
    where=lambda v, t, both: (
        (both.doca < 0.3 * mm)
        & (minimum(abs(both.mass - XI_MASS * MeV), abs(_omega_mass(v, t) - OMEGA_MASS * MeV)) < 60 * MeV)
        & (both.vertex.z < v.z)
    ),
    numbers={"m_omega": (lambda v, t: _omega_mass(v, t), "mass of a Λ and a kaon")},
    description="Λ and a displaced track: Ξ with a pion, Ω with a kaon",
)
v0_pairs_of_tracks = composite(
    "v0pair",
    displaced_vertices.those(
        "pairs", "displaced vertices of opposite charges", lambda v: ~v.same_sign & (v.min_pt > 250 * MeV)
    ),
    v0s.those("K0S", "candidates of K0S", lambda v: v.is_ks),
    masses=(lambda v: v.m_pipi, KS_MASS),
    decays_at_first=True,
    where=lambda v, s, both: (s.z > v.z) & (both.doca < 0.3 * mm) & (both.mass < 2200 * MeV) & (both.chi2 < 25),
    description="K0S and two tracks from one vertex",
)
COMPOSITES = (
    *(dstars, three_body_charm, three_muons, phi_muons, kaons_to_pimumu, kaons_to_piee, kaons_to_3pi),
    *(v0_tracks, cascades, v0_pairs_of_tracks),
)


def _mass_histogram(of: Any, low: float, high: float) -> Histogram:
    return Histogram("mass", of, 50, low * MeV, high * MeV, description="mass of the selected candidates")


@dataclass(frozen=True, config=VALIDATED)
class _OfComposite(LineType):
    """A line on a composite: mass, vertex and flight."""

    min_pt: Momentum = 1000.0
    max_doca: Distance = 0.2
    max_chi2: Positive = 25.0
    min_fd: Distance = 0.0
    min_dira: Plain = 0.99

    def mass(self, candidate: Any) -> Any:
        """Whether the mass is in the range of the line."""
        raise NotImplementedError

    def selects(self, candidate: Any) -> Any:
        c = candidate
        return (
            self.mass(c)
            & (c.pt > self.min_pt * MeV)
            & (c.doca < self.max_doca * mm)
            & (c.chi2 < self.max_chi2)
            & (c.fd > self.min_fd * mm)
            & (c.dira > self.min_dira)
        )


@dataclass(frozen=True, config=VALIDATED)
class Dst2D0Pi(_OfComposite):
    """D* to a D0 of two tracks and a slow pion, by the difference of their masses."""

    input = dstars
    histograms = (_mass_histogram(lambda c: c.mass - _d0_mass_of(c.first), 135, 165),)

    min_pt: Momentum = 2000.0
    max_doca: Distance = 0.3
    splitting_window: Momentum = 3.0
    mass_window: Momentum = 60.0
    min_d0_ip_chi2: Positive = 4.0

    def mass(self, candidate: Any) -> Any:
        d0 = _d0_mass_of(candidate.first)
        return (
            (abs(candidate.mass - d0 - DSTAR_SPLITTING * MeV) < self.splitting_window * MeV)
            & (abs(d0 - D0_MASS * MeV) < self.mass_window * MeV)
            & (candidate.first.min_ip_chi2 > self.min_d0_ip_chi2)
        )


@dataclass(frozen=True, config=VALIDATED)
class D2KPiPi(_OfComposite):
    """D+ to a kaon and two pions."""

    input = three_body_charm
    histograms = (_mass_histogram(lambda c: c.mass, D_PLUS_MASS - 100, D_PLUS_MASS + 100),)

    min_pt: Momentum = 2000.0
    min_fd: Distance = 2.0
    min_dira: Plain = 0.999
    mass_window: Momentum = 60.0

    def mass(self, candidate: Any) -> Any:
        return abs(candidate.mass - D_PLUS_MASS * MeV) < self.mass_window * MeV


@dataclass(frozen=True, config=VALIDATED)
class TauTo3Mu(_OfComposite):
    """τ to three muons."""

    input = three_muons
    histograms = (_mass_histogram(lambda c: c.mass, 1500, 2000),)

    min_pt: Momentum = 500.0
    mass_window: Momentum = 225.0
    min_dira: Plain = 0.9

    def mass(self, candidate: Any) -> Any:
        return abs(candidate.mass - TAU_MASS * MeV) < self.mass_window * MeV


@dataclass(frozen=True, config=VALIDATED)
class TauToPhiMu(_OfComposite):
    """τ to a φ and a muon."""

    input = phi_muons
    histograms = (_mass_histogram(lambda c: c.mass, 1500, 2000),)

    mass_window: Momentum = 225.0
    phi_window: Momentum = 20.0

    def mass(self, candidate: Any) -> Any:
        phi = abs(candidate.first.m_kk - PHI_MASS) < self.phi_window * MeV
        return phi & (abs(candidate.mass - TAU_MASS * MeV) < self.mass_window * MeV)


@dataclass(frozen=True, config=VALIDATED)
class _KplusLine(_OfComposite):
    """K+ to a pion and two other tracks."""

    min_pt: Momentum = 500.0
    min_fd: Distance = 20.0
    min_dira: Plain = 0.999
    mass_window: Momentum = 30.0

    def mass(self, candidate: Any) -> Any:
        return abs(candidate.mass - KAON_MASS) < self.mass_window * MeV


def _kaon_mass() -> Histogram:
    return _mass_histogram(lambda c: c.mass, 400, 600)


@dataclass(frozen=True, config=VALIDATED)
class Kplus2PiMuMu(_KplusLine):
    """K+ to a pion and two muons."""

    input = kaons_to_pimumu
    histograms = (_kaon_mass(),)


@dataclass(frozen=True, config=VALIDATED)
class Kplus2PiEE(_KplusLine):
    """K+ to a pion and two electrons."""

    input = kaons_to_piee
    histograms = (_kaon_mass(),)

    mass_window: Momentum = 80.0


@dataclass(frozen=True, config=VALIDATED)
class Kplus23Pi(_KplusLine):
    """K+ to three pions."""

    input = kaons_to_3pi
    histograms = (_kaon_mass(),)


@dataclass(frozen=True, config=VALIDATED)
class V0DetachedTrack(_OfComposite):
    """A K0S or a Λ and a detached track."""

    input = v0_tracks

    is_lambda: bool = False
    min_pt: Momentum = 2500.0
    min_track_pt: Momentum = 500.0
    min_track_ip_chi2: Positive = 12.0
    min_fd: Distance = 2.0

    def mass(self, candidate: Any) -> Any:
        v, t = candidate.first, candidate.second
        kind = v.is_lambda & ~v.is_ks if self.is_lambda else v.is_ks
        return kind & (t.pt > self.min_track_pt * MeV) & (t.ip_chi2 > self.min_track_ip_chi2)


@dataclass(frozen=True, config=VALIDATED)
class XiOmegaLLL(_OfComposite):
    """Ξ or Ω to a Λ and a pion or kaon."""

    input = cascades
    histograms = (
        _mass_histogram(lambda c: c.mass, 1270, 1370),
        Histogram("omega_mass", lambda c: c.m_omega, 50, 1620 * MeV, 1720 * MeV, description="mass as an Ω"),
    )

    min_fd: Distance = 5.0
    min_dira: Plain = 0.9995
    mass_window: Momentum = 30.0

    def mass(self, candidate: Any) -> Any:
        xi = abs(candidate.mass - XI_MASS * MeV) < self.mass_window * MeV
        return xi | (abs(candidate.m_omega - OMEGA_MASS * MeV) < self.mass_window * MeV)


@dataclass(frozen=True, config=VALIDATED)
class D2Kshh(_OfComposite):
    """D0 to a K0S and two pions."""

    input = v0_pairs_of_tracks
    histograms = (_mass_histogram(lambda c: c.mass, D0_MASS - 100, D0_MASS + 100),)

    min_pt: Momentum = 2000.0
    min_dira: Plain = 0.999
    mass_window: Momentum = 80.0

    def mass(self, candidate: Any) -> Any:
        return abs(candidate.mass - D0_MASS * MeV) < self.mass_window * MeV


TYPES = (
    *(Dst2D0Pi, D2KPiPi, TauTo3Mu, TauToPhiMu, Kplus2PiMuMu, Kplus2PiEE, Kplus23Pi),
    *(V0DetachedTrack, XiOmegaLLL, D2Kshh),
)
LINES = (
    Dst2D0Pi("Hlt1Dst2D0Pi"),
    D2KPiPi("Hlt1D2KPiPi"),
    TauTo3Mu("Hlt1TauTo3Mu"),
    TauToPhiMu("Hlt1TauToPhiMu"),
    Kplus2PiMuMu("Hlt1Kplus2PiMuMu"),
    Kplus23Pi("Hlt1Kplus23Pi"),
    V0DetachedTrack("Hlt1KsLLDetachedTrack"),
    V0DetachedTrack("Hlt1LambdaLLDetachedTrack", is_lambda=True),
    XiOmegaLLL("Hlt1XiOmegaLLL"),
    D2Kshh("Hlt1D2Kshh"),
)
"""Those that need no calorimeter."""
ECAL_LINES = (Kplus2PiEE("Hlt1Kplus2PiEE"),)
