"""The VELO track fit in slow and simple code: textbook Kalman filter with matrices, double precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.velo import BeamLine

HIT_VARIANCE = 1.0 / 6400.0
END_Z = 770.0


@dataclass(frozen=True, slots=True)
class State:
    """Position and slopes at z, and the covariance of (x, tx), equal to that of (y, ty)."""

    x: float
    y: float
    z: float
    tx: float
    ty: float
    covariance: NDArray[np.float64]

    def moved(self, dz: float) -> State:
        """The state propagated by dz, without noise."""
        transport = np.array([[1.0, dz], [0.0, 1.0]])
        return State(
            self.x + dz * self.tx,
            self.y + dz * self.ty,
            self.z + dz,
            self.tx,
            self.ty,
            transport @ self.covariance @ transport.T,
        )


@dataclass(frozen=True, slots=True)
class FittedTrack:
    backward: bool
    beamline: State
    end: State


def fit_track(hits: NDArray[np.float64], beamline: BeamLine) -> FittedTrack:
    """Fit hits [n, (x, y, z)] ordered from large to small z (docs/physics/kalman-filter.md)."""
    x, y, z = hits.T
    tx, x0 = np.polyfit(z, x, 1)
    ty, y0 = np.polyfit(z, y, 1)
    backward = bool(-(x0 * tx + y0 * ty) / (tx**2 + ty**2) > z[0])
    noise = 1e-8 + 7e-6 * (tx**2 + ty**2)
    to_small_z = _filter(hits, tx, ty, noise)
    to_large_z = _filter(hits[::-1], tx, ty, noise)
    near, far = (to_large_z, to_small_z) if backward else (to_small_z, to_large_z)
    return FittedTrack(backward, near.moved(dz_to_closest(near, beamline)), far.moved(END_Z - far.z))


def dz_to_closest(state: State, beamline: BeamLine) -> float:
    """Distance in z to the place where a track is nearest to the beam line, both at the same z."""
    # The distance in x and y grows with z as offset + dz * divergence.
    offset = np.array([state.x, state.y]) - beamline.at(state.z)
    divergence = np.array([state.tx - beamline.slope_x, state.ty - beamline.slope_y])
    (dz,), *_ = np.linalg.lstsq(divergence[:, None], -offset)
    return float(dz)


def _filter(hits: NDArray[np.float64], tx: float, ty: float, noise: float) -> State:
    scattering = np.diag([0.0, noise])
    x, y, z = hits[0]
    state = State(x, y, z, tx, ty, np.diag([HIT_VARIANCE, 1.0]))
    for hit in hits[1:]:
        before = State(state.x, state.y, state.z, state.tx, state.ty, state.covariance + scattering)
        predicted = before.moved(hit[2] - state.z)
        gain = predicted.covariance[:, 0] / (predicted.covariance[0, 0] + HIT_VARIANCE)
        rx, ry = hit[0] - predicted.x, hit[1] - predicted.y
        keep = np.eye(2) - np.outer(gain, [1.0, 0.0])
        # Joseph's form of the update: symmetric and positive for any rounding.
        covariance = keep @ predicted.covariance @ keep.T + HIT_VARIANCE * np.outer(gain, gain)
        state = State(
            predicted.x + gain[0] * rx,
            predicted.y + gain[0] * ry,
            predicted.z,
            predicted.tx + gain[1] * rx,
            predicted.ty + gain[1] * ry,
            covariance,
        )
    return State(state.x, state.y, state.z, state.tx, state.ty, state.covariance + scattering)
