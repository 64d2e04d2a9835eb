"""The polynomials that describe the magnet: their variables, powers and units.

All are polynomials of three variables: the bend of a track (`kink`, its slope in x at Z_REFERENCE minus tx of the
straight line before the magnet, or `s`, polarity times charge over momentum in c/GeV), and two slopes. The magnet is
symmetric about the planes x = 0 and y = 0: a flight is mirrored with (y, ty) -> -(y, ty), and with (x, tx, s) -> -(x,
tx, s). So a function is even in ty, and even or odd in tx and bend together: half of the powers remain.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

Z_VELO = 770.0
"""End of the VELO, mm. The straight line before the magnet is the tangent of the track at this z, or at Z_UT."""
Z_UT = 2642.0
Z_REFERENCE = 8520.0
"""z of the state behind the magnet, near the middle of the SciFi."""

N_BEND_POWERS, N_TX_POWERS, N_TY_POWERS = 5, 2, 3
SHAPE = (N_BEND_POWERS, N_TX_POWERS, N_TY_POWERS)
"""Coefficients [k][i][j] belong to bend^k tx^(2 i + o) ty^(2 j)."""


@dataclass(frozen=True, slots=True)
class Form:
    """A polynomial of (bend, tx, ty): `odd` if it changes sign with bend and tx together; then o of SHAPE is 1 - k mod
    2, otherwise k mod 2. Terms of a higher total power than `order` are not used."""

    bend: str
    unit: str
    odd: bool = False
    order: int = 6

    @property
    def powers(self) -> NDArray[np.int64]:
        """Powers of (bend, tx, ty) of every coefficient, i64[30, 3]."""
        k, i, j = np.indices(SHAPE).reshape(3, -1)
        return np.stack([k, 2 * i + (1 - k % 2 if self.odd else k % 2), 2 * j], axis=1)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Mask of the used coefficients, bool[30]; the others are 0."""
        used: NDArray[np.bool_] = self.powers.sum(axis=1) <= self.order
        return used

    def terms(self, bend: FloatArray, tx: FloatArray, ty: FloatArray) -> FloatArray:
        """Values of the terms for tracks, f64[n, 30]."""
        columns = []
        for variable, powers in zip((bend, tx, ty), self.powers.T, strict=True):
            table = np.asarray(variable)[:, None] ** np.arange(powers.max() + 1)
            columns.append(table[:, powers])
        terms: FloatArray = columns[0] * columns[1] * columns[2]
        return terms

    def value(self, coefficients: FloatArray, bend: FloatArray, tx: FloatArray, ty: FloatArray) -> FloatArray:
        """The polynomial for tracks, f64[n]."""
        value: FloatArray = self.terms(bend, tx, ty) @ coefficients.ravel()
        return value


BEHIND_MAGNET = {
    "z_magnet": Form("kink", "mm"),
    "curvature": Form("kink", "1/mm"),
    "cubic": Form("kink", "1/mm^2"),
    "kick": Form("kink", "MeV"),
    "kick_of_momentum": Form("s", "MeV"),
    "y_shift": Form("kink", "mm", odd=True),
    "y_slope": Form("kink", "1", odd=True),
}
"""From a straight line before the magnet to the SciFi:

    x(z) = x_line(z) + kink (z - z_magnet + (curvature + cubic dz) dz^2),   dz = z - Z_REFERENCE
    y(z) = y_line(z) + ty kink (y_shift + y_slope dz)
    q/p  = polarity (sine_behind - sine_before) / kick,                    sine = tx / sqrt(1 + tx^2 + ty^2)
"""

BEFORE_UT = {
    "z_magnet": Form("s", "mm", order=4),
    "kick": Form("s", "MeV", order=4),
}
"""From the line at Z_VELO to the tangent at Z_UT: x = x_line + (tx_ut - tx)(z - z_magnet)."""

Z_MIDDLE_UT = 2485.0
IN_UT = {
    "shift": Form("kink", "mm"),
    "slope": Form("kink", "1"),
    "curve": Form("kink", "1/mm"),
}
"""From the line at Z_VELO through the UT, with the kink of BEHIND_MAGNET:

    x(z) = x_line(z) + kink (shift + slope dz + curve dz^2),   dz = z - Z_MIDDLE_UT
"""

SEED_MOMENTUM = Form("intercept", "1/MeV/m")
"""polarity q/p of a SciFi track over its `intercept`, x (m) at z = 0 of its tangent at Z_REFERENCE; tx and ty are
replaced by its slope in x, and y / z there."""

SEED_CURVATURE = Form("intercept", "1/mm/m")
"""Quadratic term of x(z) about Z_REFERENCE over the intercept, at z = 0, of the chord through the hits of a pair of
layers; the other variables are the slope of the chord and y / z in its first layer."""

SEED_REACH = Form("s", "mm GeV/c")
"""x of a track in the second layer of a pair, minus x in the first one times the ratio of their z, over s; tx and ty
are replaced by x / z and y / z in the first layer."""
