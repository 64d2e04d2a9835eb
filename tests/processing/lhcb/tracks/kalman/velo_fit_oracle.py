"""The fit of long tracks in the VELO in slow and simple code: textbook Kalman filter with matrices, double
precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.velo import BeamLine

HIT_VARIANCE = 0.0125**2
MODULE, FOIL, BEAM_LINE = 2.0, 0.6, 2.91
"""p² times the variance of the scattering angle, in MeV²."""


@dataclass(frozen=True, slots=True)
class LongState:
    """Position and slopes at z, the covariances of (x, tx) and of (y, ty), chi2 by degrees of freedom."""

    position: NDArray[np.float64]
    slopes: NDArray[np.float64]
    z: float
    covariances: NDArray[np.float64]
    chi2: float


@dataclass(frozen=True, slots=True)
class Field:
    """x''(z) = q/p (bend + gradient z)."""

    bend: float = 0.0
    gradient: float = 0.0

    def position(self, z: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
        """x of a track with q/p = 1 that starts at x = 0, z = 0 parallel to z."""
        return self.bend * z**2 / 2 + self.gradient * z**3 / 6

    def slope(self, z: float) -> float:
        """dx/dz of this track."""
        return self.bend * z + self.gradient * z**2 / 2


@dataclass(slots=True)
class VeloFilter:
    """State of the filter: positions and slopes in x and y at z without field, their covariances, chi2."""

    position: NDArray[np.float64]
    slopes: NDArray[np.float64]
    z: float
    covariances: NDArray[np.float64]
    chi2: float

    def move(self, dz: float, thickness: float, qop: float, position: float, both: float, field: Field) -> None:
        """Propagate over dz with noise (position dz², both dz, 1), then add the bend of the field."""
        noise = step_noise(dz, position, both)
        variance = scattering(thickness, qop, self.slopes)
        transport = np.array([[1.0, dz], [0.0, 1.0]])
        for i in range(2):
            self.covariances[i] = transport @ self.covariances[i] @ transport.T + variance[i] * noise
        self.z += dz
        self.position = self.position + dz * self.slopes + np.array([qop * field.position(self.z), 0.0])
        self.slopes = self.slopes + np.array([qop * field.slope(self.z), 0.0])


def step_noise(dz: float, position: float, both: float) -> NDArray[np.float64]:
    """Noise of (position, slope), divided by the noise of the slope."""
    return np.array([[position * dz**2, both * dz], [both * dz, 1.0]])


def filter_hits(measured: NDArray[np.float64], qop: float, field: Field) -> VeloFilter:
    """Filter hits [n, (x, y, z)] in the given order."""
    hits = measured.copy()
    hits[:, 0] -= qop * field.position(hits[:, 2])
    slopes = (hits[0, :2] - hits[-1, :2]) / (hits[0, 2] - hits[-1, 2])
    state = VeloFilter(
        hits[0, :2].copy(), slopes, float(hits[0, 2]), np.tile(np.diag([HIT_VARIANCE, 0.01]), (2, 1, 1)), 0.0
    )
    for hit, (x, y, _) in zip(hits[1:], measured[1:], strict=True):
        dz = float(hit[2]) - state.z
        thickness = MODULE + (FOIL if behind_foil(x, y) else 0.0)
        variance = scattering(thickness, qop, state.slopes)
        transport = np.array([[1.0, dz], [0.0, 1.0]])
        for i in range(2):
            predicted = transport @ np.array([state.position[i], state.slopes[i]])
            noise = variance[i] * step_noise(dz, 0.643**2, 0.526)
            covariance = transport @ state.covariances[i] @ transport.T + noise
            gain = covariance[:, 0] / (covariance[0, 0] + HIT_VARIANCE)
            residual = hit[i] - predicted[0]
            keep = np.eye(2) - np.outer(gain, [1.0, 0.0])
            state.covariances[i] = keep @ covariance @ keep.T + HIT_VARIANCE * np.outer(gain, gain)
            state.chi2 += residual**2 / (covariance[0, 0] + HIT_VARIANCE)
            state.position[i], state.slopes[i] = predicted + gain * residual
        state.z = float(hit[2])
    return state


def fit_long_track(
    measured: NDArray[np.float64], qop: float, beamline: BeamLine, field: Field | None = None
) -> LongState:
    """Fit hits [n, (x, y, z)] ordered from large to small z (docs/physics/long-kalman-filter.md)."""
    field = field or Field()
    state = filter_hits(measured, qop, field)
    # The distance from the beam line at the same z grows by `divergence` per z.
    divergence = state.slopes - np.array([beamline.slope_x, beamline.slope_y])
    dz = float(divergence @ (beamline.at(state.z) - state.position) / (divergence @ divergence))
    state.move(dz, BEAM_LINE, qop, 0.808**2, 0.793, field)
    return LongState(state.position, state.slopes, state.z, state.covariances, state.chi2 / (2 * len(measured) - 4))


def scattering(thickness: float, qop: float, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variances of tx and ty from scattering."""
    path = np.sqrt(1.0 + slopes @ slopes)
    result: NDArray[np.float64] = (1.0 + slopes**2) * path**3 * thickness * min(abs(qop), 0.1) ** 2
    return result


def behind_foil(x: float, y: float) -> bool:
    """Whether a hit lies in the inner corner of one of the halves, which are rotated by 45 degrees."""
    u, v = x + y, y - x
    return (v > -15.0 and 0.0 <= u < 15.0) or (v < 15.0 and -15.0 < u <= 0.0)


def ip_chi2_of(state: dict[str, float], vertex: np.void) -> tuple[float, float]:
    """(IP in mm, IP chi2) of a state to a vertex."""
    slopes = np.array([state["tx"], state["ty"]])
    dz = float(vertex["z"]) - state["z"]
    distance = np.array([state["x"], state["y"]]) + dz * slopes - [float(vertex["x"]), float(vertex["y"])]
    of_track = np.diag(
        [
            state["c00"] + 2.0 * dz * state["c20"] + dz**2 * state["c22"],
            state["c11"] + 2.0 * dz * state["c31"] + dz**2 * state["c33"],
        ]
    )
    of_vertex = np.array(
        [
            [vertex["c00"], vertex["c10"], vertex["c20"]],
            [vertex["c10"], vertex["c11"], vertex["c21"]],
            [vertex["c20"], vertex["c21"], vertex["c22"]],
        ],
        dtype=np.float64,
    )
    # A shift of the vertex in z moves the track by its slope.
    projection = np.array([[-1.0, 0.0, slopes[0]], [0.0, -1.0, slopes[1]]])
    total = of_track + projection @ of_vertex @ projection.T
    ip = np.sqrt(distance @ distance / (1.0 + slopes @ slopes))
    return float(ip), float(distance @ np.linalg.solve(total, distance))
