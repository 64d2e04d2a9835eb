"""Lines on the number of tracks and on their transverse momentum."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.alice.lines.inputs import event, tpc_tracks
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType
from hltnode.processing.selection.lines.passthrough import EveryEvent

MOST_TRACKS = 1_000_000
Count = Annotated[int, Field(ge=0, le=MOST_TRACKS)]
Clusters = Annotated[int, Field(ge=0, le=159)]
Momentum = Annotated[float, Field(ge=0.0, le=1e6, allow_inf_nan=False)]


class Passthrough(EveryEvent):
    """Every event; a prescale makes it a random sample."""

    input = event


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class TrackMultiplicity(LineType):
    """Events with `min_tracks` to `max_tracks` tracks of slices."""

    input = event

    min_tracks: Count = 1
    max_tracks: Count = MOST_TRACKS

    def selects(self, candidate: Any) -> Any:
        return (candidate.n_tracks >= self.min_tracks) & (candidate.n_tracks <= self.max_tracks)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class TrackAbovePt(LineType):
    """Events with a track of at least `min_pt` GeV/c and `min_clusters` clusters in one slice."""

    input = tpc_tracks

    min_pt: Momentum = 2.0
    min_clusters: Clusters = 70

    def selects(self, candidate: Any) -> Any:
        return (candidate.pt >= self.min_pt) & (candidate.clusters >= self.min_clusters)
