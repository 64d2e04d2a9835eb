"""The fit of long tracks through all detectors in slow and simple code: matrices of five rows, double precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.parametrisation.filter_noise import Step
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.parametrisation.tracks import Line
from tests.processing.lhcb.tracks.kalman.velo_fit_oracle import MODULE, Field, filter_hits

Z_VELO, Z_MIDDLE_UT, Z_REFERENCE, Z_END = 770.0, 2485.0, 8520.0, 9410.0
SCIFI_VARIANCE, SCIFI_OBLIQUE_VARIANCE = 0.0092, 0.06
LAYER_SLOPE, OBLIQUE = 2.2e-6, 2.0
UT_LEVER_ERROR, MOMENTUM_ERROR, ENERGY_LOSS_ERROR = 0.15, 0.0013, 6.0

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hit:
    """A hit in mm: x and z at y = 0, the slopes of strip or fibre; variance of x in mm² for a UT hit."""

    x: float
    z: float
    dx_dy: float
    dz_dy: float = 0.0
    variance: float = 0.0


@dataclass(frozen=True, slots=True)
class FullFit:
    """q/p at the origin and its error (1/MeV); chi2 of all UT and SciFi hits divided by their number minus one, chi2 of
    the UT hits divided by their number; state (x, y, tx, ty) at Z_END and its covariance with the kink."""

    qop: float
    error: float
    chi2: float
    ut_chi2: float
    state: FloatArray
    covariance: FloatArray


class Levers:
    """x and y of a track minus x and y of its line at the end of the VELO, divided by the kink."""

    def __init__(self, parameters: LongTrackParameters, tx: float, ty: float) -> None:
        @cache
        def value(name: str, kink: float) -> float:
            arguments = np.array([kink]), np.array([tx]), np.array([ty])
            group, _, function = name.partition(".")
            (found,) = getattr(parameters, group).value(function, *arguments)
            return float(found)

        self.value, self.ty = value, ty

    def in_ut(self, kink: float, z: float) -> float:
        dz = z - Z_MIDDLE_UT
        shift, slope, curve = (self.value(f"in_ut.{name}", kink) for name in ("shift", "slope", "curve"))
        return shift + (slope + curve * dz) * dz

    def x(self, kink: float, z: float) -> float:
        dz = z - Z_REFERENCE
        curve = self.value("behind_velo.curvature", kink) + self.value("behind_velo.cubic", kink) * dz
        return z - self.value("behind_velo.z_magnet", kink) + curve * dz**2

    def x_of_kink(self, kink: float, z: float) -> float:
        """The derivative of kink times lever by the kink."""
        step = 1e-4
        return ((kink + step) * self.x(kink + step, z) - (kink - step) * self.x(kink - step, z)) / (2 * step)

    def y(self, kink: float, z: float) -> float:
        shift, slope = self.value("behind_velo.y_shift", kink), self.value("behind_velo.y_slope", kink)
        return self.ty * (shift + slope * (z - Z_REFERENCE))


@dataclass(frozen=True, slots=True)
class Plane:
    """Position of a layer at y = 0 and its slope, for layers without a hit."""

    z: float
    dz_dy: float = 0.0


Lever = Callable[[float], float]


def no_lever(_: float) -> float:
    return 0.0


class Fit:
    """The state (x, y, tx, ty, kink - kink₀) of a track at z, its covariance, and chi2."""

    def __init__(self, line: FloatArray, covariances: FloatArray, kink: float) -> None:
        self.kink = kink
        self.state = np.array([*line, 0.0])
        self.covariance = np.zeros((5, 5))
        for i in range(2):
            self.covariance[np.ix_((i, i + 2), (i, i + 2))] = covariances[i]
        self.covariance[4, 4] = 1e-4
        self.z, self.chi2, self.n_hits = Z_VELO, 0.0, 0
        self._levers: tuple[Lever, Lever, Lever] = (no_lever, no_lever, no_lever)

    def step(self, z: float, levers: tuple[Lever, Lever, Lever], noise: tuple[FloatArray, FloatArray]) -> None:
        """Propagate to z with the levers of x, of its change with the kink, and of y; noise of (x, tx) and of (y,
        ty)."""
        dz = z - self.z
        (x, x_slope), (of_kink, of_kink_slope), (y, y_slope) = (
            (new(z) - old(self.z) - _slope(old, self.z) * dz, _slope(new, z) - _slope(old, self.z))
            for old, new in zip(self._levers, levers, strict=True)
        )
        transport = np.eye(5)
        transport[0, 2] = transport[1, 3] = dz
        transport[0, 4], transport[2, 4] = of_kink, of_kink_slope
        transport[1, 4], transport[3, 4] = y, y_slope
        self.covariance = transport @ self.covariance @ transport.T
        for i in range(2):
            self.covariance[np.ix_((i, i + 2), (i, i + 2))] += noise[i]
        self.state = transport @ self.state + self.kink * np.array([x, y, x_slope, y_slope, 0.0])
        self.z, self._levers = z, levers

    def update(self, hit: Hit, hit_variance: float) -> None:
        row = np.array([1.0, -hit.dx_dy, 0.0, 0.0, 0.0])
        variance = float(row @ self.covariance @ row) + hit_variance
        gain = self.covariance @ row / variance
        residual = hit.x - float(row @ self.state)
        keep = np.eye(5) - np.outer(gain, row)
        self.covariance = keep @ self.covariance @ keep.T + hit_variance * np.outer(gain, gain)
        self.state = self.state + gain * residual
        self.chi2 += residual**2 / variance
        self.n_hits += 1


def kink_of(levers: Levers, tx: float, tx_end: float) -> float:
    """The kink of a track with this slope at z = 9410 mm."""
    dz = Z_END - Z_REFERENCE
    kink = tx_end - tx
    for _ in range(2):
        curvature, cubic = levers.value("behind_velo.curvature", kink), levers.value("behind_velo.cubic", kink)
        kink = (tx_end - tx) / (1.0 + (2.0 * curvature + 3.0 * cubic * dz) * dz)
    return kink


def of_step(noise: FloatArray) -> FloatArray:
    """The noise matrix of (position, slope)."""
    return np.array([[noise[0], noise[1]], [noise[1], noise[2]]])


def of_layer(slope: float, dz: float) -> FloatArray:
    """The noise matrix of (position, slope) behind a thin layer."""
    return slope * np.array([[dz**2, dz], [dz, 1.0]])


def scattering_of(qop: float, tx: float, ty: float) -> float:
    """Factor for the noise of 1 GeV at normal incidence."""
    return float((1e3 * qop) ** 2 * (1.0 + OBLIQUE * (tx**2 + ty**2)))


def fit_through_detectors(
    parameters: LongTrackParameters,
    field: Field,
    velo: FloatArray,
    qop: float,
    tx_end: float,
    ut: list[Hit | None],
    ut_planes: list[Plane],
    scifi: list[Hit | None],
    scifi_planes: list[Plane],
) -> FullFit:
    """velo: hits [n, (x, y, z)] from small to large z; q/p and slope at Z_END from the long tracking; the
    hit of each layer, or None (docs/physics/long-kalman-filter.md)."""
    start = filter_hits(velo, qop, field)
    start.move(Z_VELO - start.z, MODULE, qop, 1.0, 1.0, field)
    tx, ty = map(float, start.slopes)
    levers = Levers(parameters, tx, ty)
    kink = kink_of(levers, tx, tx_end)
    line = np.array([*start.position, *start.slopes])
    fit = Fit(line, start.covariances, kink)
    of_momentum = scattering_of(qop, tx, ty)
    in_ut = (lambda z: levers.in_ut(kink, z), lambda z: levers.in_ut(kink, z), no_lever)
    for layer, (hit, plane) in enumerate(zip(ut, ut_planes, strict=True)):
        z = plane.z if hit is None else hit.z
        noise = of_layer(parameters.noise[Step.UT_LAYER][2] * of_momentum, z - fit.z)
        in_x = noise
        if layer == 0:
            noise = of_step(parameters.noise[Step.BEFORE_UT] * of_momentum)
            in_x = noise + np.diag([(UT_LEVER_ERROR * kink) ** 2, 0.0])
        fit.step(z, in_ut, (in_x, noise))
        if hit is not None:
            fit.update(hit, hit.variance)
    n_ut, ut_chi2 = fit.n_hits, fit.chi2
    in_scifi = (
        lambda z: levers.x(kink, z),
        lambda z: levers.x_of_kink(kink, z),
        lambda z: levers.y(kink, z),
    )
    for layer, (hit, plane) in enumerate(zip([*scifi, None], [*scifi_planes, Plane(Z_END)], strict=True)):
        at = plane.z if hit is None else hit.z
        z = at + plane.dz_dy * float(fit.state[1] + (at - fit.z) * fit.state[3])
        noise = of_layer(LAYER_SLOPE * of_momentum, z - fit.z)
        if layer == 0:
            noise = of_step(parameters.noise[Step.MAGNET] * of_momentum)
        fit.step(z, in_scifi, (noise, noise))
        if hit is not None:
            fit.update(hit, SCIFI_VARIANCE + SCIFI_OBLIQUE_VARIANCE * float(fit.state[2]) ** 2)
    fitted = kink + float(fit.state[4])
    (s,) = parameters.behind_velo.momentum(Line.of(line[:, None], Z_VELO), np.array([fitted]))
    in_magnet = 1e-3 * parameters.polarity * float(s)
    after = 1.0 / (1.0 + parameters.energy_loss * abs(in_magnet))
    relative2 = float(fit.covariance[4, 4]) / fitted**2
    relative2 += MOMENTUM_ERROR**2 + (ENERGY_LOSS_ERROR * in_magnet) ** 2
    return FullFit(
        qop=in_magnet * after,
        error=float(np.sqrt(relative2)) * abs(in_magnet) * after**2,
        chi2=fit.chi2 / (fit.n_hits - 1),
        ut_chi2=ut_chi2 / n_ut if n_ut else 0.0,
        state=fit.state[:4],
        covariance=fit.covariance,
    )


def _slope(lever: Lever, z: float) -> float:
    return lever(z + 0.5) - lever(z - 0.5)
