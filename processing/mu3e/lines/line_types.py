"""Lines on vertices and tracks."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.mu3e.lines.inputs import event, time_windows, tracks, vertices
from hltnode.processing.mu3e.vertices.collections import MAX_VERTICES
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType
from hltnode.processing.selection.lines.passthrough import EveryEvent

Count = Annotated[int, Field(ge=1, le=MAX_VERTICES)]
Energy = Annotated[float, Field(ge=0.0, le=1000.0, allow_inf_nan=False)]
Chi2 = Annotated[float, Field(ge=0.0, le=10_000.0, allow_inf_nan=False)]
Hits = Annotated[int, Field(ge=3, le=5)]


class Passthrough(EveryEvent):
    """Every sub-slice; a prescale makes it a random sample."""

    input = event


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class Window(LineType):
    """Sub-slices with a window of at least `min_vertices` vertices."""

    input = time_windows

    min_vertices: Count = 1

    def selects(self, candidate: Any) -> Any:
        return candidate.vertices >= self.min_vertices


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class DecayVertex(LineType):
    """Sub-slices with a vertex of a small chi2, whose energy is within `energy_window` MeV of the mass of the muon and
    whose momenta have a sum of at most `max_momentum` MeV/c."""

    input = vertices

    max_chi2: Chi2 = 15.0
    energy_window: Energy = 5.0
    max_momentum: Energy = 8.0

    def selects(self, candidate: Any) -> Any:
        return (
            (candidate.chi2 <= self.max_chi2)
            & (candidate.energy_error <= self.energy_window)
            & (candidate.momentum <= self.max_momentum)
        )


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class TrackMomentum(LineType):
    """Sub-slices with a track of at least `min_hits` hits and `min_momentum` to `max_momentum` MeV/c."""

    input = tracks

    min_hits: Hits = 4
    min_momentum: Energy = 0.0
    max_momentum: Energy = 1000.0

    def selects(self, candidate: Any) -> Any:
        return (
            (candidate.hits >= self.min_hits)
            & (candidate.momentum >= self.min_momentum)
            & (candidate.momentum <= self.max_momentum)
        )
