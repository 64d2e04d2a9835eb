"""Lines on merged tracks: their number, their transverse momentum, jets and V0 candidates of them."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.alice.detector_constants import LAMBDA_MASS, NEUTRAL_KAON_MASS
from hltnode.processing.alice.lines.inputs import event, tpc_jets, tpc_merged_tracks, v0s
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType
from hltnode.processing.selection.lines.passthrough import EveryEvent

MOST_TRACKS = 1_000_000
MOST_CLUSTERS = 159 * 32
Count = Annotated[int, Field(ge=0, le=MOST_TRACKS)]
Clusters = Annotated[int, Field(ge=0, le=MOST_CLUSTERS)]
Cosine = Annotated[float, Field(ge=-1.0, le=1.0, allow_inf_nan=False)]
Momentum = Annotated[float, Field(ge=0.0, le=1e6, allow_inf_nan=False)]


class Passthrough(EveryEvent):
    """Every event; a prescale makes it a random sample."""

    input = event


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class TrackMultiplicity(LineType):
    """Events with `min_tracks` to `max_tracks` merged tracks."""

    input = event

    min_tracks: Count = 1
    max_tracks: Count = MOST_TRACKS

    def selects(self, candidate: Any) -> Any:
        return (candidate.n_merged_tracks >= self.min_tracks) & (candidate.n_merged_tracks <= self.max_tracks)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class TrackAbovePt(LineType):
    """Events with a merged track of at least `min_pt` GeV/c and `min_clusters` clusters."""

    input = tpc_merged_tracks

    min_pt: Momentum = 2.0
    min_clusters: Clusters = 70

    def selects(self, candidate: Any) -> Any:
        return (candidate.pt >= self.min_pt) & (candidate.clusters >= self.min_clusters)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class JetAbovePt(LineType):
    """Events with a jet of at least `min_pt` GeV/c above the mean of the event, and `min_tracks` tracks in its cone."""

    input = tpc_jets

    min_pt: Momentum = 10.0
    min_tracks: Count = 2

    def selects(self, candidate: Any) -> Any:
        return (candidate.pt_above_background >= self.min_pt) & (candidate.tracks >= self.min_tracks)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class _V0(LineType):
    """What both kinds of V0 share: cuts in GeV/c, cm and GeV/c2."""

    input = v0s

    min_pt: Momentum = 1.0
    min_radius: Momentum = 2.0
    max_dca: Momentum = 1.0
    min_pointing: Cosine = 0.998

    def _is_decay(self, candidate: Any) -> Any:
        return (
            (candidate.pt >= self.min_pt)
            & (candidate.radius >= self.min_radius)
            & (candidate.dca <= self.max_dca)
            & (candidate.pointing >= self.min_pointing)
        )


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class NeutralKaon(_V0):
    """Events with a candidate of K0S -> pi+ pi- within `mass_window` GeV/c2 of its mass."""

    mass_window: Momentum = 0.02

    def selects(self, candidate: Any) -> Any:
        return self._is_decay(candidate) & within(candidate.mass_k0s, NEUTRAL_KAON_MASS, self.mass_window)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class Lambda(_V0):
    """Events with a candidate of Lambda -> p pi- or its antiparticle within `mass_window` GeV/c2 of its mass."""

    mass_window: Momentum = 0.008

    def selects(self, candidate: Any) -> Any:
        is_near = [
            within(mass, LAMBDA_MASS, self.mass_window) for mass in (candidate.mass_lambda, candidate.mass_antilambda)
        ]
        return self._is_decay(candidate) & (is_near[0] | is_near[1])


def within(value: Any, of: float, window: float) -> Any:
    """Whether a value is at most `window` from another one."""
    return (value >= of - window) & (value <= of + window)
