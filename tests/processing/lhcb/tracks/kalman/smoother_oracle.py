"""Smoothed states in slow and simple code: a Kalman filter of (x, y, tx, ty) with matrices and the smoother of Rauch,
Tung and Striebel (AIAA Journal 3 (1965) 1445), double precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.processing.lhcb.tracks.kalman.velo_fit_oracle import (
    FOIL,
    HIT_VARIANCE,
    MODULE,
    Field,
    behind_foil,
    scattering,
    step_noise,
)

States = list[tuple[NDArray[np.float64], NDArray[np.float64]]]
MEASURED = np.eye(2, 4)
"""The projection matrix: a hit measures x and y."""


@dataclass(frozen=True, slots=True)
class SmoothedTrack:
    """States f64[n, 4] of (x, y, tx, ty) at n hits with covariances f64[n, 4, 4]; residuals f64[n, 2] of the hits
    against the track without them, and their chi2 f64[n]."""

    states: NDArray[np.float64]
    covariances: NDArray[np.float64]
    residuals: NDArray[np.float64]
    chi2: NDArray[np.float64]


def smooth(measured: NDArray[np.float64], qop: float, field: Field) -> SmoothedTrack:
    """Smooth hits [n, (x, y, z)] in the direction of flight."""
    bend = qop if abs(qop) < 0.1 else 0.0
    hits = measured.copy()
    hits[:, 0] -= bend * field.position(hits[:, 2])
    slopes = (hits[-1, :2] - hits[0, :2]) / (hits[-1, 2] - hits[0, 2])
    variance = HIT_VARIANCE * np.eye(2)
    state = np.concatenate([hits[0, :2], slopes])
    covariance = np.diag([HIT_VARIANCE, HIT_VARIANCE, 0.01, 0.01])
    transports, predicted, filtered = [], [(state, covariance)], [(state, covariance)]
    for before, here, (x, y, _) in zip(hits[:-1], hits[1:], measured[1:], strict=True):
        dz = here[2] - before[2]
        transport = np.eye(4) + dz * np.eye(4, k=2)
        of_axes = scattering(MODULE + (FOIL if behind_foil(x, y) else 0.0), qop, slopes)
        noise = np.kron(step_noise(dz, 0.643**2, 0.526), np.diag(of_axes))
        state, covariance = transport @ state, transport @ covariance @ transport.T + noise
        predicted.append((state, covariance))
        gain = covariance @ MEASURED.T @ np.linalg.inv(MEASURED @ covariance @ MEASURED.T + variance)
        state = state + gain @ (here[:2] - MEASURED @ state)
        keep = np.eye(4) - gain @ MEASURED
        covariance = keep @ covariance @ keep.T + gain @ variance @ gain.T
        filtered.append((state, covariance))
        transports.append(transport)
    smoothed = [filtered[-1]]
    for (at, cov), (next_at, next_cov), transport in reversed(
        list(zip(filtered[:-1], predicted[1:], transports, strict=True))
    ):
        gain = cov @ transport.T @ np.linalg.inv(next_cov)
        later_at, later_cov = smoothed[-1]
        smoothed.append((at + gain @ (later_at - next_at), cov + gain @ (later_cov - next_cov) @ gain.T))
    smoothed.reverse()
    return _with_residuals(hits, smoothed, bend, field)


def _with_residuals(
    hits: NDArray[np.float64],
    smoothed: list[tuple[NDArray[np.float64], NDArray[np.float64]]],
    bend: float,
    field: Field,
) -> SmoothedTrack:
    states = np.array([at for at, _ in smoothed])
    covariances = np.array([cov for _, cov in smoothed])
    biased = hits[:, :2] - states[:, :2]
    of_biased = HIT_VARIANCE - np.stack([covariances[:, 0, 0], covariances[:, 1, 1]], axis=1)
    states[:, 0] += bend * field.position(hits[:, 2])
    states[:, 2] += bend * np.array([field.slope(z) for z in hits[:, 2]])
    return SmoothedTrack(states, covariances, biased * HIT_VARIANCE / of_biased, (biased**2 / of_biased).sum(axis=1))
