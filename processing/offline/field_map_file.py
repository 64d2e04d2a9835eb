"""Reads maps of a magnetic field (docs/formats/field-map.md)."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.field_map import FieldMap

MAX_BYTES = 1 << 29
MAX_POINTS = 6_000_000
"""The largest map in use has 3.8 million points, with both halves in x and in y."""

_COLUMNS = 6
# mm; numbers in a file are rounded.
_ROUNDING = 0.01
_LARGEST = np.array([1e5, 1e5, 1e5, 5.0, 5.0, 5.0])  # mm, T


class FieldMapError(ValueError):
    """A file is no map of a field, or its map does not cover the tracks; the message names the file."""


def read_map(path: Path) -> FieldMap:
    """The map in a file. Raises FieldMapError, which names the file and what is wrong."""
    rows = _numbers(path)
    x, y, z = (_Axis.of(path, name, values) for name, values in zip("xyz", rows.T[:3], strict=True))
    # Checked before the grid is allocated: a damaged file may describe a huge one.
    shape = (x.n, y.n, z.n)
    n = x.n * y.n * z.n
    place = (x.number * y.n + y.number) * z.n + z.number
    if n != len(rows) or np.bincount(place, minlength=n).max() > 1:
        raise FieldMapError(f"{path}: {len(rows)} points, expected each point of {x.n} x {y.n} x {z.n} once")
    values = np.empty((3, n), np.float32)
    values[:, place] = rows.T[3:]
    return FieldMap((x.first, y.first, z.first), (x.step, y.step, z.step), values.reshape(3, *shape))


def require_reach(path: Path, field_map: FieldMap, reach: tuple[tuple[float, float], ...]) -> None:
    """Refuse a map that does not cover where tracks fly: first and last x, y and z in mm.

    Raises FieldMapError. A mirrored axis only needs its positive half.
    """
    for axis, (least, most) in enumerate(reach):
        halves = axis < len(field_map.mirrored)
        first, last = field_map.first[axis], field_map.last[axis]
        if last < most or (first > least and not (halves and field_map.mirrored[axis])):
            raise FieldMapError(
                f"{path}: {'xyz'[axis]} from {first:g} to {last:g} mm; tracks need {least:g} to {most:g}"
                + (", or from 0 on, if the other half is the mirror image" if halves else "")
            )


def _numbers(path: Path) -> Float64Array:
    """The lines of the file as f64[points, 6]; all values are finite and possible."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise FieldMapError(f"{path}: is no file")
        if size > MAX_BYTES:
            raise FieldMapError(f"{path}: {size} bytes, at most {MAX_BYTES} are read")
        with path.open(encoding="ascii") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # NumPy warns of a file without lines, which is an error below
            rows: Float64Array = np.loadtxt(file, dtype=np.float64, ndmin=2, max_rows=MAX_POINTS + 1)
    except OSError as error:
        raise FieldMapError(f"{path}: cannot be read: {error.strerror}") from error
    except FieldMapError:
        raise
    except ValueError as error:
        raise FieldMapError(f"{path}: is not lines of numbers: {error}") from error
    if len(rows) == 0:
        raise FieldMapError(f"{path}: holds no point")
    if len(rows) > MAX_POINTS:
        raise FieldMapError(f"{path}: more than {MAX_POINTS} points")
    if rows.shape[1] != _COLUMNS:
        raise FieldMapError(f"{path}: {rows.shape[1]} numbers in a line, expected {_COLUMNS}: x y z Bx By Bz")
    bad = ~(np.abs(rows) <= _LARGEST).all(axis=1)
    if bad.any():
        values = " ".join(f"{value:g}" for value in rows[int(np.argmax(bad))])
        raise FieldMapError(f"{path}: point {values}: at most {_LARGEST[0]:g} mm and {_LARGEST[3]:g} T are possible")
    return rows


@dataclass(frozen=True, slots=True)
class _Axis:
    """The positions of a grid along one axis (mm), and the index of the position of each point."""

    name: str
    first: float
    step: float
    n: int
    number: NDArray[np.int64]

    @classmethod
    def of(cls, path: Path, name: str, values: Float64Array) -> Self:
        """Raises FieldMapError if the steps are not equal."""
        places = np.unique(values)
        places = places[np.concatenate([[True], np.diff(places) > _ROUNDING])]
        if len(places) < 2:
            raise FieldMapError(f"{path}: all points have the same {name}")
        first, step = float(places[0]), float(places[-1] - places[0]) / (len(places) - 1)
        number = np.rint((values - first) / step).astype(np.int64)
        if np.abs(values - (first + step * number)).max() > _ROUNDING or number.max() >= len(places):
            raise FieldMapError(f"{path}: the steps in {name} are not equal")
        return cls(name, first, step, len(places), number)
