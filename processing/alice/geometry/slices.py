"""Slices of the TPC: from the global frame to that of a slice and back.

The frame of a slice has x along the middle of the slice, y across the rows, and the z of the global frame. It is the
global frame, turned around the beam by the angle of the middle of the slice.
"""

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.detector_constants import SLICE_ANGLE, SLICES_OF_SIDE

Floats = NDArray[np.float64]


def slice_angle(slices: NDArray[np.integer]) -> Floats:
    """Angle of the middle of each slice around the beam, in rad."""
    return (np.asarray(slices) % SLICES_OF_SIDE + 0.5) * SLICE_ANGLE


def side_sign(slices: NDArray[np.integer]) -> Floats:
    """+1 for slices of side A (z > 0), -1 for those of side C."""
    return np.where(np.asarray(slices) < SLICES_OF_SIDE, 1.0, -1.0)


def slice_at(x: Floats, y: Floats, z: Floats) -> NDArray[np.int64]:
    """The slice at a place of the global frame; z = 0 belongs to side A."""
    sector = np.floor(np.mod(np.arctan2(y, x), 2.0 * np.pi) / SLICE_ANGLE).astype(np.int64) % SLICES_OF_SIDE
    return sector + np.where(z < 0.0, SLICES_OF_SIDE, 0)


def local_from_global(slices: NDArray[np.integer], x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """x and y of places or momenta in the frames of slices."""
    angle = slice_angle(slices)
    cosine, sine = np.cos(angle), np.sin(angle)
    return x * cosine + y * sine, y * cosine - x * sine


def global_from_local(slices: NDArray[np.integer], x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """x and y of places or momenta in the global frame."""
    angle = slice_angle(slices)
    cosine, sine = np.cos(angle), np.sin(angle)
    return x * cosine - y * sine, y * cosine + x * sine
