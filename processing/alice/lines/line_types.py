"""Lines on merged tracks: their number, their transverse momentum, and jets of them."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.alice.lines.inputs import event, tpc_jets, tpc_merged_tracks
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType
from hltnode.processing.selection.lines.passthrough import EveryEvent

MOST_TRACKS = 1_000_000
MOST_CLUSTERS = 159 * 32
Count = Annotated[int, Field(ge=0, le=MOST_TRACKS)]
Clusters = Annotated[int, Field(ge=0, le=MOST_CLUSTERS)]
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
