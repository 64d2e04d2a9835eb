"""Reads results that an earlier run wrote as JSON, and models of the parts that all chains share."""

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, TypeAdapter, ValidationError, model_validator

from hltnode.processing.offline.checks.residuals import DRAWN_TOGETHER


class Binned(BaseModel):
    """Sums per bin: one list beside `edges` and `unit` for each."""

    unit: str
    edges: list[float]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name, sums in self:
            if name not in ("unit", "edges") and len(sums) != len(self.edges) - 1:
                raise ValueError(f"{name} has {len(sums)} values in {len(self.edges) - 1} bins")
        return self


class ParticleSums(Binned):
    """Sums over the particles of a category and their tracks."""

    reconstructible: list[float]
    reconstructed: list[float]
    clones: list[float]
    tracks: list[float]
    purity_sum: list[float]
    purity_squares: list[float]
    hit_efficiency_sum: list[float]
    hit_efficiency_squares: list[float]


class TrackSums(Binned):
    """Sums over the tracks of a stage."""

    tracks: list[float]
    ghosts: list[float]


class _Against(BaseModel):
    title: str
    unit: str
    edges: list[float]


class Residual(BaseModel):
    """A residual in bins of a variable."""

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


class FoundSums(Binned):
    """Sums over objects to find and objects that were found."""

    reconstructible: list[float]
    reconstructed: list[float]


class Counts(BaseModel):
    """Numbers of a category."""

    reconstructible: int
    reconstructed: int
    efficiency: float | None


class Stage(BaseModel):
    """A stage of the reconstruction."""

    ghost_rate: float | None
    categories: dict[str, Counts]


class _CurveCategory(BaseModel):
    reconstructible: int
    efficiency: list[float | None]


class _OperatingPoint(BaseModel):
    ghost_rate: float | None
    efficiency: dict[str, float | None]


class Curve(BaseModel):
    """Efficiency against ghost rate for one cut."""

    ghost_rate: list[float | None]
    categories: dict[str, _CurveCategory]
    operating_point: _OperatingPoint

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name, category in self.categories.items():
            if len(category.efficiency) != len(self.ghost_rate) or name not in self.operating_point.efficiency:
                raise ValueError(f"the curve of {name} does not fit its ghost rates")
        return self


def read_result(path: Path, model: type[BaseModel]) -> dict[str, Any]:
    """The JSON object in a file, which must fit the model.

    Raises ValueError, which names the file and what is wrong in it.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        model.model_validate_json(content)
        return TypeAdapter(dict[str, Any]).validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "file"
        raise ValueError(f"{path}: not a result of hltnode validate --json: {place}: {first['msg']}") from error
