"""Lines on long tracks and muons (docs/physics/selection-lines.md)."""

from functools import reduce
from math import log as ln
from operator import or_
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import MIN_PV_Z, Distance, Length, Momentum, Positive
from hltnode.processing.lhcb.lines.inputs.stub_fields import muon_stubs
from hltnode.processing.lhcb.lines.inputs.track_fields import long_tracks, muons
from hltnode.processing.selection.expressions.functions import log
from hltnode.processing.selection.expressions.units import GeV, MeV, mm, rad
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType


def behind_target(candidate: Any, min_pv_z: float) -> Any:
    """True if the primary vertex of a candidate is downstream of the gas target, or if it has none."""
    return ~candidate.has_pv | (candidate.pv.z > min_pv_z * mm)


@dataclass(frozen=True, config=VALIDATED)
class TrackMVA(LineType):
    """A displaced track; the cut on its impact parameter is tighter at lower pt.

    With s = pt - `alpha`: above `max_pt`, IP chi2 > `min_ip_chi2`; between `min_pt` and `max_pt`,
    ln(IP chi2) > `param1` / (s - `param2`)² + `param3` / max_pt (max_pt - s) + ln(min_ip_chi2). MeV; param1 in GeV².
    """

    input = long_tracks

    max_chi2: Positive = 2.5
    min_pt: Momentum = 2000.0
    max_pt: Annotated[float, Field(ge=1.0, le=1e8)] = 26000.0
    alpha: Annotated[float, Field(ge=-1e5, le=1e5)] = 296.0
    param1: Positive = 1.0
    param2: Positive = 2000.0
    param3: Positive = 1.248
    min_ip_chi2: Annotated[float, Field(gt=0.0, le=1e9)] = 7.4
    min_pv_z: Length = MIN_PV_Z

    def pt_of(self, track: Any) -> Any:
        """The transverse momentum that the line cuts on."""
        return track.pt

    def selects(self, candidate: Any) -> Any:
        t = candidate
        s = (self.pt_of(t) - self.alpha * MeV) / GeV
        max_pt = self.max_pt / 1000
        threshold = (
            self.param1 / (s - self.param2 / 1000) ** 2 + self.param3 / max_pt * (max_pt - s) + ln(self.min_ip_chi2)
        )
        low = (s > self.min_pt / 1000) & (s < max_pt) & (log(t.ip_chi2) > threshold)
        high = (s > max_pt) & (t.ip_chi2 > self.min_ip_chi2)
        return (t.chi2 < self.max_chi2) & (low | high) & behind_target(t, self.min_pv_z)


@dataclass(frozen=True, config=VALIDATED)
class TrackMuonMVA(TrackMVA):
    """A displaced muon, with the cuts of TrackMVA."""

    input = muons

    max_chi2: Positive = 100.0
    alpha: Annotated[float, Field(ge=-1e5, le=1e5)] = 0.0


@dataclass(frozen=True, config=VALIDATED)
class OneMuonTrack(LineType):
    """A straight line of hits in the muon stations, found without a track."""

    input = muon_stubs

    max_chi2_x: Positive = 1.0
    max_chi2_y: Positive = 0.3

    def selects(self, candidate: Any) -> Any:
        return (candidate.chi2_x < self.max_chi2_x) & (candidate.chi2_y < self.max_chi2_y)


@dataclass(frozen=True, config=VALIDATED)
class SingleHighPtMuon(LineType):
    """A muon of high pt."""

    input = muons

    max_chi2: Positive = 100.0
    min_pt: Momentum = 6000.0
    min_p: Momentum = 6000.0
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        t = candidate
        return (
            (t.chi2 < self.max_chi2)
            & (t.pt > self.min_pt * MeV)
            & (t.p > self.min_p * MeV)
            & behind_target(t, self.min_pv_z)
        )


@dataclass(frozen=True, config=VALIDATED)
class SingleHighPtTrack(SingleHighPtMuon):
    """A track of high pt, without muon identification."""

    input = long_tracks

    min_pt: Momentum = 8000.0


@dataclass(frozen=True, config=VALIDATED)
class LowPtMuon(LineType):
    """A muon far from the primary vertex."""

    input = muons

    max_chi2: Positive = 100.0
    min_pt: Momentum = 80.0
    min_ip: Distance = 4.0
    min_ip_chi2: Positive = 7.4
    min_pv_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        t = candidate
        return (
            (t.chi2 < self.max_chi2)
            & (t.pt > self.min_pt * MeV)
            & (t.ip > self.min_ip * mm)
            & (t.ip_chi2 > self.min_ip_chi2)
            & behind_target(t, self.min_pv_z)
        )


@dataclass(frozen=True, config=VALIDATED)
class Rich1Alignment(LineType):
    """A fast track whose ring in RICH 1 lies on few mirrors, in four windows of azimuth."""

    input = long_tracks
    windows: ClassVar[tuple[tuple[float, float], ...]] = ((-2.65, -2.30), (-0.80, -0.50), (0.50, 0.80), (2.30, 2.65))

    max_chi2: Positive = 2.0
    min_pt: Momentum = 500.0
    min_p: Momentum = 30000.0
    min_eta: Positive = 1.6
    max_eta: Positive = 2.04

    def selects(self, candidate: Any) -> Any:
        t = candidate
        in_windows = [(t.phi > low * rad) & (t.phi < high * rad) for low, high in self.windows]
        return (
            (t.p > self.min_p * MeV)
            & (t.pt > self.min_pt * MeV)
            & (t.chi2 < self.max_chi2)
            & (t.eta > self.min_eta)
            & (t.eta < self.max_eta)
            & reduce(or_, in_windows)
        )


@dataclass(frozen=True, config=VALIDATED)
class Rich2Alignment(Rich1Alignment):
    """A fast track whose ring in RICH 2 lies on few mirrors, in four windows of azimuth."""

    windows = ((-2.59, -2.49), (-0.65, -0.55), (0.55, 0.65), (2.49, 2.59))

    min_p: Momentum = 60000.0
    min_eta: Positive = 2.65
    max_eta: Positive = 2.8
