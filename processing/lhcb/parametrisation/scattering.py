"""Errors of the prediction of a track: multiple scattering and the resolution of the detectors.

Every slab of material deflects a track by a random angle; the displacement behind it is proportional to the distance.
The quantities below are linear in these angles and in the errors of hits, so that their variances are sums. Tracks are
approximated as straight: the magnet changes distances by only a few per cent. Each variance is written as

    resolution + (scattering + oblique t^2) / p^2,   t = sqrt(tx^2 + ty^2), p in GeV.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.material import RF_FOIL, is_hit, scattering_angle, slabs
from hltnode.processing.lhcb.parametrisation.forms import Z_REFERENCE, Z_UT, Z_VELO, FloatArray
from hltnode.processing.lhcb.parametrisation.tracks import STEREO_LAYERS, X_LAYERS

VELO_RESOLUTION = 0.0125
"""mm, of a VELO hit."""
SCIFI_RESOLUTION = 0.10
"""mm, of a SciFi hit in x."""
STEREO_SLOPE = 0.0875
"""dx/dy of the stereo layers."""
Z_MAGNET = 5250.0
"""z of the comparison of x of a SciFi seed and of a VELO track, mm."""

_MOMENTA = np.array([2.0, 3.0, 5.0, 8.0, 15.0, 30.0, 100.0])
ANGLES = np.geomspace(0.015, 0.30, 24)
AZIMUTHS = np.radians(np.arange(7.5, 90.0, 15.0))


class Quantity(StrEnum):
    """Predicted or compared quantities."""

    X_AT_UT = "x_at_ut"
    """x at Z_UT, from the VELO, if the momentum is known; mm. y has the same error."""
    X_BEHIND = "x_behind"
    """x at Z_REFERENCE, from the VELO, if the momentum is known; mm. y has the same error."""
    TX_BEHIND = "tx_behind"
    """Slope there."""
    MATCH_X = "match_x"
    """x of a SciFi seed minus that of the VELO track, in the middle of the magnet; mm."""
    MATCH_Y = "match_y"
    """y of a SciFi seed minus that of the VELO track at Z_REFERENCE; mm."""
    MATCH_TY = "match_ty"
    """Slope in y of a SciFi seed minus that of the VELO track."""
    MATCH_Y_TY = "match_y_ty"
    """Covariance of the last two; mm."""
    CURVATURE = "curvature"
    """Quadratic term of x(z) in the SciFi; 1/mm."""
    KINK = "kink"
    """Kink of a track with a VELO and a SciFi part: its error over the kink is that of the momentum."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedErrors:
    """Variances of quantities: coefficients f64[3], resolution, scattering and oblique."""

    coefficients: dict[Quantity, FloatArray]

    def variance(self, quantity: Quantity, p: FloatArray, angle: FloatArray) -> FloatArray:
        """The variance for momenta p (GeV) and angles to the beam."""
        resolution, scattering, oblique = self.coefficients[quantity]
        found: FloatArray = resolution + (scattering + oblique * angle**2) / p**2
        return found


def fit_expected_errors(layer_z: FloatArray) -> ExpectedErrors:
    """The variances, fitted to tracks of many angles and momenta; layer_z f64[12] of the SciFi."""
    angle, azimuth, p = (a.ravel() for a in np.meshgrid(ANGLES, AZIMUTHS, _MOMENTA, indexing="ij"))
    tx, ty = angle * np.cos(azimuth), angle * np.sin(azimuth)
    crossings = _Crossings.of(tx, ty, p)
    end = crossings.velo_state()
    found = {}
    for quantity, variance in _variances(crossings, end, layer_z).items():
        terms = np.stack([np.ones_like(p), 1.0 / p**2, angle**2 / p**2], axis=1)
        weight = 1.0 / np.abs(variance)
        coefficients, *_ = np.linalg.lstsq(terms * weight[:, None], variance * weight, rcond=None)
        found[quantity] = coefficients.astype(np.float64)
    return ExpectedErrors(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Crossings:
    """z of the slabs f64[m], ascending; variance of the slope in x or y from each slab for each track, f64[m, n]; true
    for a VELO module with a hit of the track, bool[m, n]."""

    z: FloatArray
    variance: FloatArray
    is_module: NDArray[np.bool_]

    @classmethod
    def of(cls, tx: FloatArray, ty: FloatArray, p: FloatArray) -> "_Crossings":
        crossed = [slab for slab in slabs() if -100.0 < slab.z < 9500.0]
        slant = np.sqrt(1.0 + tx * tx + ty * ty)
        thickness = np.stack([np.where(is_hit(s, tx * s.z, ty * s.z), s.thickness, 0.0) for s in crossed]) * slant
        modules = np.array([slab.name == "VELO module" for slab in crossed])
        # A track crosses the foil once, where it leaves the beam vacuum: before its first module.
        first = np.argmax(thickness * modules[:, None] > 0.0, axis=0)
        thickness[first, np.arange(len(tx))] += RF_FOIL * slant
        # The logarithm of Highland's formula applies to all of the material together.
        total = thickness.sum(axis=0)
        angle = scattering_angle(1000.0 * p, total) * slant
        variance = np.square(angle) * thickness / total * (1.0 + 0.5 * (tx * tx + ty * ty))
        return cls(np.array([slab.z for slab in crossed]), variance, modules[:, None] & (thickness > 0.0))

    def velo_state(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Variance of x, covariance of x and tx, variance of tx at Z_VELO, by a Kalman filter with this scattering."""
        n = self.variance.shape[1]
        c00, c20, c22 = np.full(n, 1e4), np.zeros(n), np.ones(n)
        z = self.z[0]
        for number in np.flatnonzero(self.z < Z_VELO):
            dz = self.z[number] - z
            z = self.z[number]
            c00, c20 = c00 + dz * (2.0 * c20 + dz * c22), c20 + dz * c22
            gain = np.where(self.is_module[number], 1.0 / (c00 + VELO_RESOLUTION**2), 0.0)
            c00, c20, c22 = c00 - gain * c00 * c00, c20 - gain * c00 * c20, c22 - gain * c20 * c20
            c22 = c22 + self.variance[number]
        dz = Z_VELO - z
        return c00 + dz * (2.0 * c20 + dz * c22), c20 + dz * c22, c22


def _variances(
    crossings: _Crossings, end: tuple[FloatArray, FloatArray, FloatArray], layer_z: FloatArray
) -> dict[Quantity, FloatArray]:
    """Variance of each quantity for each track: VELO state, material behind the VELO, SciFi hits."""
    c00, c20, c22 = end
    behind_velo = crossings.z > Z_VELO
    z, variance = crossings.z[behind_velo], crossings.variance[behind_velo]
    x_fit = np.linalg.pinv((layer_z[list(X_LAYERS), None] - Z_REFERENCE) ** np.arange(3))
    y_fit = np.linalg.pinv((layer_z[list(STEREO_LAYERS), None] - Z_REFERENCE) ** np.arange(2))
    # Displacement in each layer of a track that is deflected by 1 at z, and its effect on the fits.
    x_turned = x_fit @ np.maximum(layer_z[list(X_LAYERS), None] - z, 0.0)
    y_turned = y_fit @ np.maximum(layer_z[list(STEREO_LAYERS), None] - z, 0.0)
    to_magnet = np.array([1.0, Z_MAGNET - Z_REFERENCE, 0.0])

    def of_velo(at: float) -> FloatArray:
        """Variance of x of the VELO state at z."""
        dz = at - Z_VELO
        return c00 + dz * (2.0 * c20 + dz * c22)

    def turned(first: FloatArray, second: FloatArray) -> FloatArray:
        product: FloatArray = (first * second) @ variance
        return product

    to_ut, to_reference = np.maximum(Z_UT - z, 0.0), np.maximum(Z_REFERENCE - z, 0.0)
    before_reference = (z < Z_REFERENCE).astype(np.float64)
    y_resolution = SCIFI_RESOLUTION / STEREO_SLOPE
    y_hits = np.square(y_resolution) * (y_fit @ y_fit.T)
    x_hits = np.square(SCIFI_RESOLUTION) * (x_fit @ x_fit.T)
    match_x = to_magnet @ x_turned
    at_reference = of_velo(Z_REFERENCE)
    return {
        Quantity.X_AT_UT: of_velo(Z_UT) + turned(to_ut, to_ut),
        Quantity.X_BEHIND: at_reference + turned(to_reference, to_reference),
        Quantity.TX_BEHIND: c22 + turned(before_reference, before_reference),
        Quantity.MATCH_X: of_velo(Z_MAGNET) + turned(match_x, match_x) + to_magnet @ x_hits @ to_magnet,
        Quantity.MATCH_Y: at_reference + turned(y_turned[0], y_turned[0]) + y_hits[0, 0],
        Quantity.MATCH_TY: c22 + turned(y_turned[1], y_turned[1]) + y_hits[1, 1],
        Quantity.MATCH_Y_TY: c20 + (Z_REFERENCE - Z_VELO) * c22 + turned(y_turned[0], y_turned[1]) + y_hits[0, 1],
        Quantity.CURVATURE: turned(x_turned[2], x_turned[2]) + x_hits[2, 2],
        Quantity.KINK: c22 + turned(x_turned[1], x_turned[1]) + x_hits[1, 1],
    }
