"""Reads maps of the magnetic field (docs/formats/field-map.md)."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.field_map import FieldMap, FloatArray
from hltnode.processing.lhcb.geometry.magnet import DOWN, UP, Magnet, bending_power

MAX_BYTES = 1 << 29
MAX_POINTS = 6_000_000
"""LHCb's own maps have 3.8 million points, with both halves in x and in y."""

_COLUMNS = 6
# mm; numbers in a file are rounded.
_ROUNDING = 0.01
_LARGEST = np.array([1e5, 1e5, 1e5, 5.0, 5.0, 5.0])  # mm, T
# What tracks cross, mm: |x|, |y|, and z from the collisions to the end of the SciFi.
_MAX_X, _MAX_Y = 3200.0, 2500.0
_FIRST_Z, _LAST_Z = 0.0, 9500.0
# T m, along the axis: LHCb's dipole has 4.
_LEAST_BENDING, _MOST_BENDING = 1.0, 10.0


def read_field_map(path: Path) -> Magnet:
    """A magnet with the field of a map, and the polarity that it was made with.

    Raises GeometryError, which names the file and what is wrong.
    """

    rows = _numbers(path)
    x, y, z = (_Axis.of(path, name, values) for name, values in zip("xyz", rows.T[:3], strict=True))
    # A grid with more points than the file has is not laid out.
    shape = (x.n, y.n, z.n)
    n = x.n * y.n * z.n
    place = (x.number * y.n + y.number) * z.n + z.number
    if n != len(rows) or np.bincount(place, minlength=n).max() > 1:
        raise GeometryError(f"{path}: {len(rows)} points, expected each point of {x.n} x {y.n} x {z.n} once")
    _require_reach(path, x, -_MAX_X, _MAX_X, halves=True)
    _require_reach(path, y, -_MAX_Y, _MAX_Y, halves=True)
    _require_reach(path, z, _FIRST_Z, _LAST_Z, halves=False)
    values = np.empty((3, n), np.float32)
    values[:, place] = rows.T[3:]
    found = FieldMap((x.first, y.first, z.first), (x.step, y.step, z.step), values.reshape(3, *shape))
    bending = bending_power(found.field, _FIRST_Z, _LAST_Z)
    if not _LEAST_BENDING <= abs(bending) <= _MOST_BENDING:
        raise GeometryError(
            f"{path}: By along the z axis sums up to {bending:.3g} T m; {_LEAST_BENDING:g} to {_MOST_BENDING:g} of"
            " either sign are possible: are the columns x, y, z in mm and Bx, By, Bz in T?"
        )
    polarity = UP if bending > 0.0 else DOWN
    return Magnet(polarity, replace(found, values=(polarity * found.values).astype(np.float32)))


def _numbers(path: Path) -> FloatArray:
    """The lines of the file, f64[points, 6]: finite and of possible size."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise GeometryError(f"{path}: is no file")
        if size > MAX_BYTES:
            raise GeometryError(f"{path}: {size} bytes, at most {MAX_BYTES} are read")
        with path.open(encoding="ascii") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a file without lines
            rows: FloatArray = np.loadtxt(file, dtype=np.float64, ndmin=2, max_rows=MAX_POINTS + 1)
    except OSError as error:
        raise GeometryError(f"{path}: cannot be read: {error.strerror}") from error
    except GeometryError:
        raise
    except ValueError as error:
        raise GeometryError(f"{path}: is not lines of numbers: {error}") from error
    if len(rows) == 0:
        raise GeometryError(f"{path}: holds no point")
    if len(rows) > MAX_POINTS:
        raise GeometryError(f"{path}: more than {MAX_POINTS} points")
    if rows.shape[1] != _COLUMNS:
        raise GeometryError(f"{path}: {rows.shape[1]} numbers in a line, expected {_COLUMNS}: x y z Bx By Bz")
    bad = ~(np.abs(rows) <= _LARGEST).all(axis=1)
    if bad.any():
        values = " ".join(f"{value:g}" for value in rows[int(np.argmax(bad))])
        raise GeometryError(f"{path}: point {values}: at most {_LARGEST[0]:g} mm and {_LARGEST[3]:g} T are possible")
    return rows


@dataclass(frozen=True, slots=True)
class _Axis:
    """The places of a grid along one axis, mm, and which of them each point has."""

    name: str
    first: float
    step: float
    n: int
    number: NDArray[np.int64]

    @property
    def last(self) -> float:
        return self.first + self.step * (self.n - 1)

    @classmethod
    def of(cls, path: Path, name: str, values: FloatArray) -> Self:
        """Raises GeometryError if the steps are not equal."""
        places = np.unique(values)
        places = places[np.concatenate([[True], np.diff(places) > _ROUNDING])]
        if len(places) < 2:
            raise GeometryError(f"{path}: all points have the same {name}")
        first, step = float(places[0]), float(places[-1] - places[0]) / (len(places) - 1)
        number = np.rint((values - first) / step).astype(np.int64)
        if np.abs(values - (first + step * number)).max() > _ROUNDING or number.max() >= len(places):
            raise GeometryError(f"{path}: the steps in {name} are not equal")
        return cls(name, first, step, len(places), number)


def _require_reach(path: Path, axis: _Axis, least: float, most: float, *, halves: bool) -> None:
    is_half = halves and axis.first == 0.0
    if axis.last < most or (axis.first > least and not is_half):
        raise GeometryError(
            f"{path}: {axis.name} from {axis.first:g} to {axis.last:g} mm; tracks need {least:g} to {most:g}"
            + (", or from 0 on, if the other half is the mirror image" if halves else "")
        )
