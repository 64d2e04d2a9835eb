"""Results of the checker as `hltnode validate --json` writes them, read back to be drawn with another."""

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, model_validator

from hltnode.processing.lhcb.offline.validation.checker.binning import PARTICLE_BINNINGS
from hltnode.processing.offline import result_file
from hltnode.processing.offline.result_file import Counts, Curve, FoundSums, ParticleSums, Residual, Stage, TrackSums


class _StageHistograms(BaseModel):
    categories: dict[str, dict[str, ParticleSums]]
    tracks: dict[str, TrackSums]

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        for name, variables in self.categories.items():
            if missing := PARTICLE_BINNINGS.keys() - variables.keys():
                raise ValueError(f"{name} has no sums against {', '.join(sorted(missing))}")
        return self


class _VertexHistograms(BaseModel):
    n_tracks: FoundSums
    z: FoundSums
    n_pvs: FoundSums


class _Histograms(BaseModel):
    events: int
    stages: dict[str, _StageHistograms]
    residuals: dict[str, dict[str, Residual]]
    pv: dict[str, _VertexHistograms] = {}


class _Vertices(Counts):
    false_rate: float | None


class _Result(BaseModel):
    """The keys that a report draws and lists; others are ignored."""

    velo: Stage
    velo_ut: Stage | None = None
    long: Stage | None = None
    pv: _Vertices | None
    curves: dict[str, dict[str, Curve]] = {}
    histograms: _Histograms


def read_result(path: Path) -> dict[str, Any]:
    """The JSON object that an earlier run wrote. Raises ValueError, which names the file and the fault."""
    return result_file.read_result(path, _Result)
