"""A magnetic field on a grid of points."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hltnode.processing.offline.arrays import Float64Array


@dataclass(frozen=True, eq=False)
class FieldMap:
    """The field of a dipole at points of a rectangular grid with equal steps along each axis.

    `first`, `step`: of x, y, z, mm. `values` f32[3, nx, ny, nz]: Bx, By, Bz in T. A grid that begins at x = 0, or at
    y = 0, is one half of the magnet: the other half is its mirror image.
    """

    first: tuple[float, float, float]
    step: tuple[float, float, float]
    values: NDArray[np.float32]

    @property
    def last(self) -> tuple[float, float, float]:
        """The last x, y, z of the grid, mm."""
        x, y, z = (
            first + step * (n - 1) for first, step, n in zip(self.first, self.step, self.values.shape[1:], strict=True)
        )
        return x, y, z

    @property
    def mirrored(self) -> tuple[bool, bool]:
        """Whether the grid is one half of the magnet, in x and in y."""
        return self.first[0] == 0.0, self.first[1] == 0.0

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its numbers."""
        return sha256(np.array([*self.first, *self.step]).tobytes() + self.values.tobytes()).hexdigest()

    def field(self, x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Float64Array:
        """(Bx, By, Bz) in T, shape (3, ...), at points in mm, by trilinear interpolation.

        Points outside the grid have the field of its edge.
        """
        point = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in (x, y, z)))
        in_x, in_y = self.mirrored
        cell, fraction = [], []
        for axis, (value, is_half) in enumerate(zip(point, (in_x, in_y, False), strict=True)):
            distance = (np.abs(value) if is_half else value) - self.first[axis]
            last = self.values.shape[1 + axis] - 1
            steps = np.clip(distance / self.step[axis], 0.0, last)
            cell.append(np.minimum(steps.astype(np.int64), last - 1))
            fraction.append(steps - cell[-1])
        total = np.zeros((3, *point[0].shape))
        for corner in range(8):
            upper = [corner >> axis & 1 for axis in range(3)]
            weight = np.prod([f if u else 1.0 - f for f, u in zip(fraction, upper, strict=True)], axis=0)
            total += weight * self.values[:, cell[0] + upper[0], cell[1] + upper[1], cell[2] + upper[2]]
        # Mirror images of a dipole: Bx changes sign with x and with y, Bz with y, By never.
        side_x = np.sign(point[0]) if in_x else 1.0
        side_y = np.sign(point[1]) if in_y else 1.0
        total[0] *= side_x * side_y
        total[2] *= side_y
        return total
