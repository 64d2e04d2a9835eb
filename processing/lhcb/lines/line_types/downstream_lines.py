"""Lines on vertices of two downstream tracks (docs/physics/downstream-v0s.md)."""

from typing import Any

from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import Distance, Momentum, Positive
from hltnode.processing.lhcb.lines.inputs.downstream_fields import downstream_v0s
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType


@dataclass(frozen=True, config=VALIDATED)
class _DownstreamLine(LineType):
    """Cuts that all lines on downstream V0s have."""

    input = downstream_v0s

    min_pt: Momentum = 2000.0
    min_track_pt: Momentum = 0.0
    max_chi2: Positive = 10.0
    min_ip: Distance = 3.0
    max_ip: Distance = 30.0

    def mass(self, candidate: Any) -> Any:
        """Whether kind and mass are those of the line."""
        raise NotImplementedError

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            self.mass(v)
            & (v.pt > self.min_pt * MeV)
            & (v.min_pt > self.min_track_pt * MeV)
            & (v.chi2 < self.max_chi2)
            & (v.ip >= self.min_ip * mm)
            & (v.ip < self.max_ip * mm)
        )


@dataclass(frozen=True, config=VALIDATED)
class DownstreamKsToPiPi(_DownstreamLine):
    """K0S to two downstream pions. `min_ip`: 0 for those of the primary vertex too."""

    histograms = (
        Histogram("mass", lambda v: v.m_pipi, 50, 400 * MeV, 600 * MeV, description="K0S to two downstream pions"),
    )

    min_mass: Momentum = 472.6
    max_mass: Momentum = 522.6

    def mass(self, candidate: Any) -> Any:
        v = candidate
        return v.is_ks & (v.m_pipi > self.min_mass * MeV) & (v.m_pipi < self.max_mass * MeV)


@dataclass(frozen=True, config=VALIDATED)
class DownstreamLambdaToPPi(_DownstreamLine):
    """Λ to a downstream proton and pion: the track of higher momentum is the proton."""

    histograms = (
        Histogram("mass", lambda v: v.m_ppi, 50, 1080 * MeV, 1160 * MeV, description="Λ to downstream proton and pion"),
    )

    min_mass: Momentum = 1105.7
    max_mass: Momentum = 1125.7

    def mass(self, candidate: Any) -> Any:
        v = candidate
        return v.is_lambda & (v.m_ppi > self.min_mass * MeV) & (v.m_ppi < self.max_mass * MeV)


@dataclass(frozen=True, config=VALIDATED)
class DownstreamGammaToEE(_DownstreamLine):
    """A photon that converts between VELO and UT: two downstream tracks with the mass of two electrons."""

    min_pt: Momentum = 1500.0
    min_ip: Distance = 0.0
    max_ip: Distance = 5.0
    max_mass: Momentum = 10.0

    def mass(self, candidate: Any) -> Any:
        return candidate.is_photon & (candidate.m_ee < self.max_mass * MeV)


TYPES = (DownstreamKsToPiPi, DownstreamLambdaToPPi, DownstreamGammaToEE)
PROMPT = 0.001
LINES = (
    DownstreamKsToPiPi("Hlt1DownstreamKsToPiPi"),
    DownstreamKsToPiPi("Hlt1DownstreamKsToPiPiPrompt", min_pt=500.0, min_ip=0.0, max_ip=3.0, postscale=PROMPT),
    DownstreamLambdaToPPi("Hlt1DownstreamLambdaToPPi"),
    DownstreamLambdaToPPi("Hlt1DownstreamLambdaToPPiPrompt", min_pt=500.0, min_ip=0.0, max_ip=3.0, postscale=PROMPT),
    DownstreamGammaToEE("Hlt1DownstreamGammaToEE"),
    DownstreamKsToPiPi("Hlt1DownstreamTwoTrackKs", min_pt=3500.0, min_track_pt=550.0, min_ip=0.0, max_ip=5.0),
)
"""Those of the sequence with downstream tracks."""
