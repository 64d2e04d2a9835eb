"""The fitted polynomials, and their values for tracks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from hltnode.processing.lhcb.parametrisation.flights import MEV
from hltnode.processing.lhcb.parametrisation.forms import Z_MIDDLE_UT, Z_REFERENCE, FloatArray, Form
from hltnode.processing.lhcb.parametrisation.polynomials import Fit
from hltnode.processing.lhcb.parametrisation.tracks import Curve, Line, sine

INTERCEPT_UNIT = 1000.0
"""mm: intercepts of SciFi tracks are in m, so that the variables of a polynomial are of one size."""


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """Polynomials by name: their forms, and their coefficients f64[5, 2, 3]."""

    forms: Mapping[str, Form]
    coefficients: Mapping[str, FloatArray]

    @classmethod
    def fitted(cls, fits: Mapping[str, Fit]) -> Self:
        """The fitted polynomials."""
        return cls({k: fit.form for k, fit in fits.items()}, {k: fit.coefficients for k, fit in fits.items()})

    def value(self, name: str, bend: FloatArray, tx: FloatArray, ty: FloatArray) -> FloatArray:
        """A function for tracks, f64[n]."""
        return self.forms[name].value(self.coefficients[name], bend, tx, ty)


class BehindMagnet(Functions):
    """From a straight line before the magnet to the SciFi (BEHIND_MAGNET)."""

    __slots__ = ()

    def kink(self, line: Line, s: FloatArray) -> FloatArray:
        """The kink of tracks that leave the lines with `s` (c/GeV)."""
        return _tx_behind(line, s * self.value("kick_of_momentum", s, line.tx, line.ty)) - line.tx

    def curve(self, line: Line, kink: FloatArray) -> Curve:
        """The curves in the SciFi of tracks that leave the lines with this kink."""

        def value(name: str) -> FloatArray:
            return self.value(name, kink, line.tx, line.ty)

        return Curve(
            x=line.x_at(Z_REFERENCE) + kink * (Z_REFERENCE - value("z_magnet")),
            tx=line.tx + kink,
            quadratic=kink * value("curvature"),
            cubic=kink * value("cubic"),
            y=line.y_at(Z_REFERENCE) + line.ty * kink * value("y_shift"),
            ty=line.ty * (1.0 + kink * value("y_slope")),
        )

    def momentum(self, line: Line, kink: FloatArray) -> FloatArray:
        """s = polarity times charge over momentum (c/GeV) of tracks that leave the lines with this kink."""
        ty_behind = line.ty * (1.0 + kink * self.value("y_slope", kink, line.tx, line.ty))
        change = sine(line.tx + kink, ty_behind) - sine(line.tx, line.ty)
        return MEV * change / self.value("kick", kink, line.tx, line.ty)


class BeforeUt(Functions):
    """From the line at the end of the VELO to the UT (BEFORE_UT)."""

    __slots__ = ()

    def state(self, line: Line, s: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        """x at a z in the UT and slope there of tracks that leave the lines with `s` (c/GeV)."""
        tx = _tx_behind(line, s * self.value("kick", s, line.tx, line.ty))
        return line.x_at(z) + (tx - line.tx) * (z - self.value("z_magnet", s, line.tx, line.ty)), tx


class InUt(Functions):
    """From the line at the end of the VELO through the UT (IN_UT)."""

    __slots__ = ()

    def x(self, line: Line, kink: FloatArray, z: float) -> FloatArray:
        """x at a z in the UT of tracks that leave the lines with this kink."""
        shift, slope, curve = (self.value(name, kink, line.tx, line.ty) for name in ("shift", "slope", "curve"))
        dz = z - Z_MIDDLE_UT
        return line.x_at(z) + kink * (shift + (slope + curve * dz) * dz)


class Seeds(Functions):
    """The measurement of a SciFi track from the collisions alone (SEED_MOMENTUM, SEED_CURVATURE, SEED_REACH)."""

    __slots__ = ()

    def momentum(self, curve: Curve) -> FloatArray:
        """s = polarity times charge over momentum (c/GeV)."""
        intercept = (curve.x - curve.tx * Z_REFERENCE) / INTERCEPT_UNIT
        return MEV * intercept * self.value("momentum", intercept, curve.tx, curve.y / Z_REFERENCE)

    def curvature(self, pair: str, slope: FloatArray, intercept: FloatArray, y_over_z: FloatArray) -> FloatArray:
        """Quadratic term (1/mm) of tracks whose chord through a pair of layers has this slope and intercept (m)."""
        return intercept * self.value(f"curvature_{pair}", intercept, slope, y_over_z)

    def reach(self, pair: str, x_over_z: FloatArray, s: FloatArray, y_over_z: FloatArray) -> FloatArray:
        """x (mm) of tracks with `s` in the second layer of a pair, minus that of a line from the origin through their
        hit in the first."""
        return s * self.value(f"reach_{pair}", s, x_over_z, y_over_z)


def _tx_behind(line: Line, kick: FloatArray) -> FloatArray:
    """Slope behind a kick (MeV times s in c/GeV) in x; ty does not change."""
    behind = sine(line.tx, line.ty) + kick / MEV
    found: FloatArray = np.sqrt((1.0 + line.ty**2) / (1.0 - behind**2)) * behind
    return found
