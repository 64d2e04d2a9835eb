"""Results of the checker as `hltnode validate --json` writes them, read back to be drawn with another."""

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, TypeAdapter, ValidationError, model_validator

from hltnode.processing.lhcb.offline.validation.checker.binning import PARTICLE_BINNINGS
from hltnode.processing.lhcb.offline.validation.checker.residuals import DRAWN_TOGETHER


class _Binned(BaseModel):
    """Sums per bin: one list beside `edges` and `unit` for each."""

    unit: str
    edges: list[float]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name, sums in self:
            if name not in ("unit", "edges") and len(sums) != len(self.edges) - 1:
                raise ValueError(f"{name} has {len(sums)} values in {len(self.edges) - 1} bins")
        return self


class _ParticleSums(_Binned):
    reconstructible: list[float]
    reconstructed: list[float]
    clones: list[float]
    tracks: list[float]
    purity_sum: list[float]
    purity_squares: list[float]
    hit_efficiency_sum: list[float]
    hit_efficiency_squares: list[float]


class _TrackSums(_Binned):
    tracks: list[float]
    ghosts: list[float]


class _Against(BaseModel):
    title: str
    unit: str
    edges: list[float]


class _Residual(BaseModel):
    title: str
    unit: str
    limit: float
    against: _Against
    counts: list[list[float]]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        widths = {len(row) for row in self.counts}
        if len(self.counts) != len(self.against.edges) - 1 or len(widths) != 1 or widths.pop() % DRAWN_TOGETHER:
            raise ValueError("the counts do not fit the bins")
        return self


class _StageHistograms(BaseModel):
    categories: dict[str, dict[str, _ParticleSums]]
    tracks: dict[str, _TrackSums]

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        for name, variables in self.categories.items():
            if missing := PARTICLE_BINNINGS.keys() - variables.keys():
                raise ValueError(f"{name} has no sums against {', '.join(sorted(missing))}")
        return self


class _Found(_Binned):
    reconstructible: list[float]
    reconstructed: list[float]


class _VertexHistograms(BaseModel):
    n_tracks: _Found
    z: _Found
    n_pvs: _Found


class _Histograms(BaseModel):
    events: int
    stages: dict[str, _StageHistograms]
    residuals: dict[str, dict[str, _Residual]]
    pv: dict[str, _VertexHistograms] = {}


class _Counts(BaseModel):
    reconstructible: int
    reconstructed: int
    efficiency: float | None


class _Stage(BaseModel):
    ghost_rate: float | None
    categories: dict[str, _Counts]


class _Vertices(_Counts):
    false_rate: float | None


class _CurveCategory(BaseModel):
    reconstructible: int
    efficiency: list[float | None]


class _OperatingPoint(BaseModel):
    ghost_rate: float | None
    efficiency: dict[str, float | None]


class _Curve(BaseModel):
    ghost_rate: list[float | None]
    categories: dict[str, _CurveCategory]
    operating_point: _OperatingPoint

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name, category in self.categories.items():
            if len(category.efficiency) != len(self.ghost_rate) or name not in self.operating_point.efficiency:
                raise ValueError(f"the curve of {name} does not fit its ghost rates")
        return self


class _Result(BaseModel):
    """What a report draws and lists; other keys are ignored."""

    velo: _Stage
    velo_ut: _Stage | None = None
    long: _Stage | None = None
    pv: _Vertices | None
    curves: dict[str, dict[str, _Curve]] = {}
    histograms: _Histograms


def read_result(path: Path) -> dict[str, Any]:
    """The JSON object that an earlier run wrote. Raises ValueError, which names the file and what is wrong in it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        _Result.model_validate_json(content)
        return TypeAdapter(dict[str, Any]).validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "file"
        raise ValueError(f"{path}: not a result of hltnode validate --json: {place}: {first['msg']}") from error
