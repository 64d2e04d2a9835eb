"""The fit of long tracks through the SciFi, slow and clear: matrices of five rows, double precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.parametrisation.functions import BehindMagnet
from hltnode.processing.lhcb.parametrisation.tracks import Line

Z_VELO, Z_REFERENCE, Z_END = 770.0, 8520.0, 9410.0
HIT_VARIANCE = 0.01
ENERGY_LOSS = 19.61
MAGNET = np.array([[746.0, 0.131], [0.131, 3.45e-5]])
LAYER_SLOPE, OBLIQUE = 2.2e-6, 8.0

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SciFiHit:
    """mm: x and z at y = 0, and the slopes of the fibre."""

    x: float
    z: float
    dx_dy: float
    dz_dy: float


@dataclass(frozen=True, slots=True)
class FullFit:
    """q/p at the origin and its error (1/MeV), chi2 over hits less one, the covariance at the last hit."""

    qop: float
    error: float
    chi2: float
    covariance: FloatArray


class Levers:
    """x and y of a track less those of its line at the end of the VELO, over the kink."""

    def __init__(self, functions: BehindMagnet, tx: float, ty: float) -> None:
        @cache
        def value(name: str, kink: float) -> float:
            (found,) = functions.value(name, np.array([kink]), np.array([tx]), np.array([ty]))
            return float(found)

        self.value, self.ty = value, ty

    def x(self, kink: float, z: float) -> float:
        dz = z - Z_REFERENCE
        curve = self.value("curvature", kink) + self.value("cubic", kink) * dz
        return z - self.value("z_magnet", kink) + curve * dz**2

    def x_of_kink(self, kink: float, z: float) -> float:
        """The derivative of kink times lever."""
        step = 1e-4
        return ((kink + step) * self.x(kink + step, z) - (kink - step) * self.x(kink - step, z)) / (2 * step)

    def y(self, kink: float, z: float) -> float:
        return self.ty * (self.value("y_shift", kink) + self.value("y_slope", kink) * (z - Z_REFERENCE))


def magnet_noise(per_gev: float, tx: float, ty: float) -> FloatArray:
    """Of (x, tx) and of (y, ty) between the VELO and the first layer."""
    return MAGNET * per_gev**2 * (1.0 + OBLIQUE * (tx**2 + ty**2))


def layer_noise(per_gev: float, tx: float, ty: float, dz: float) -> FloatArray:
    """Of a step between layers."""
    slope = LAYER_SLOPE * per_gev**2 * (1.0 + OBLIQUE * (tx**2 + ty**2))
    return slope * np.array([[dz**2, dz], [dz, 1.0]])


def kink_of(functions: BehindMagnet, tx: float, ty: float, tx_end: float) -> float:
    """The kink of a track with this slope at z = 9410."""
    levers, dz = Levers(functions, tx, ty), Z_END - Z_REFERENCE
    kink = tx_end - tx
    for _ in range(2):
        slope = 1.0 + (2.0 * levers.value("curvature", kink) + 3.0 * levers.value("cubic", kink) * dz) * dz
        kink = (tx_end - tx) / slope
    return kink


def fit_through_scifi(
    functions: BehindMagnet,
    polarity: float,
    velo: FloatArray,
    variances: tuple[float, float, float],
    kink: float,
    qop: float,
    hits: list[SciFiHit | None],
    planes: list[tuple[float, float]],
) -> FullFit:
    """velo: (x, y, tx, ty) at z = 770, variances: c00, c20, c22 there in x and in y; kink about which the track is
    linear; hits of each layer, or None; z and dz_dy of the layers (docs/physics/long-kalman-filter.md)."""
    c00, c20, c22 = variances
    tx, ty = float(velo[2]), float(velo[3])
    levers = Levers(functions, tx, ty)
    state = np.array([*velo, 0.0])
    covariance = np.zeros((5, 5))
    covariance[0, 0] = covariance[1, 1] = c00
    covariance[2, 0] = covariance[0, 2] = covariance[3, 1] = covariance[1, 3] = c20
    covariance[2, 2] = covariance[3, 3] = c22
    covariance[4, 4] = 1e-4
    z, chi2, n = Z_VELO, 0.0, 0
    per_gev = 1e3 * qop
    for layer, (hit, (plane, dz_dy)) in enumerate(zip(hits, planes, strict=True)):
        at = plane if hit is None else hit.z
        new_z = at + dz_dy * (state[1] + (at - z) * state[3])
        dz, first = new_z - z, layer == 0
        x, x_slope = _change(lambda at: levers.x(kink, at), z, new_z, first)
        of_kink, of_kink_slope = _change(lambda at: levers.x_of_kink(kink, at), z, new_z, first)
        y, y_slope = _change(lambda at: levers.y(kink, at), z, new_z, first)
        transport = np.eye(5)
        transport[0, 2] = transport[1, 3] = dz
        transport[0, 4], transport[2, 4] = of_kink, of_kink_slope
        transport[1, 4], transport[3, 4] = y, y_slope
        noise = magnet_noise(per_gev, tx, ty) if first else layer_noise(per_gev, tx, ty, dz)
        covariance = transport @ covariance @ transport.T
        for position in (0, 1):
            rows = np.ix_((position, position + 2), (position, position + 2))
            covariance[rows] += noise
        state = transport @ state + kink * np.array([x, y, x_slope, y_slope, 0.0])
        z = new_z
        if hit is None:
            continue
        row = np.array([1.0, -hit.dx_dy, 0.0, 0.0, 0.0])
        variance = float(row @ covariance @ row) + HIT_VARIANCE
        gain = covariance @ row / variance
        residual = hit.x - float(row @ state)
        keep = np.eye(5) - np.outer(gain, row)
        covariance = keep @ covariance @ keep.T + HIT_VARIANCE * np.outer(gain, gain)
        state = state + gain * residual
        chi2 += residual**2 / variance
        n += 1
    fitted = kink + state[4]
    line = Line.of(velo[:, None], Z_VELO)
    (s,) = functions.momentum(line, np.array([fitted]))
    in_magnet = 1e-3 * polarity * float(s)
    after = 1.0 / (1.0 + ENERGY_LOSS * abs(in_magnet))
    error = float(np.sqrt(covariance[4, 4])) * abs(in_magnet) * after**2 / abs(fitted)
    return FullFit(in_magnet * after, error, chi2 / (n - 1), covariance)


def _change(lever: Callable[[float], float], z: float, new_z: float, from_velo: bool) -> tuple[float, float]:
    """What a lever adds to position and slope over a step, beside what the slope before gives."""

    def slope(at: float) -> float:
        return lever(at + 0.5) - lever(at - 0.5)

    if from_velo:
        return lever(new_z), slope(new_z)
    return lever(new_z) - lever(z) - slope(z) * (new_z - z), slope(new_z) - slope(z)
