"""Where particles cross the rows of the TPC."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossings:
    """Crossings of rows by particles.

    particle, slice_number, row: i64[n]. y, z: f64[n] in cm in the frame of the slice. tan_y, tan_z: f64[n], dy/dx and
    dz/dx of the track.
    """

    particle: Integers
    slice_number: Integers
    row: Integers
    y: Floats
    z: Floats
    tan_y: Floats
    tan_z: Floats

    def __len__(self) -> int:
        return len(self.particle)

    def chosen(self, which: NDArray[np.bool_] | Integers) -> "Crossings":
        """Some of the crossings."""
        return Crossings(**{field.name: getattr(self, field.name)[which] for field in fields(Crossings)})


def joined_crossings(several: Sequence[Crossings]) -> Crossings:
    """Crossings one after the other."""
    return Crossings(
        **{field.name: np.concatenate([getattr(each, field.name) for each in several]) for field in fields(Crossings)}
    )


def no_crossings() -> Crossings:
    """Crossings of no particle."""
    whole, real = np.empty(0, np.int64), np.empty(0)
    return Crossings(particle=whole, slice_number=whole, row=whole, y=real, z=real, tan_y=real, tan_z=real)
