"""Measurements of flights through the magnet: the lines before it, and the curve in the SciFi behind it."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from hltnode.processing.lhcb.geometry.ideal_ut import LAYER_Z as UT_LAYER_Z
from hltnode.processing.lhcb.geometry.magnet import Field
from hltnode.processing.lhcb.parametrisation.flights import Origins, fly
from hltnode.processing.lhcb.parametrisation.forms import Z_REFERENCE, Z_UT, Z_VELO, FloatArray

X_LAYERS = (0, 3, 4, 7, 8, 11)
STEREO_LAYERS = (1, 2, 5, 6, 9, 10)

_N_UT_PLANES = len(UT_LAYER_Z) + 1

# The SciFi, mm: stations 1 and 2 have five modules on each side, station 3 six; fibres end at this height.
_MAX_X_OF_FIRST, _MAX_X, _MAX_Y = 2650.0, 3180.0, 2425.0
_N_LAYERS_OF_FIRST = 8
# mm to m: keeps the matrices of fits well conditioned.
_METRE = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Straight lines: x, y at z (mm), and slopes; f64[n], z is a number."""

    x: FloatArray
    y: FloatArray
    tx: FloatArray
    ty: FloatArray
    z: float

    @classmethod
    def of(cls, states: FloatArray, z: float) -> Self:
        """The tangents of states f64[4, n] at z."""
        x, y, tx, ty = states
        return cls(x, y, tx, ty, z)

    def x_at(self, z: FloatArray | float) -> FloatArray:
        """x at z."""
        return self.x + (z - self.z) * self.tx

    def y_at(self, z: FloatArray | float) -> FloatArray:
        """y at z."""
        return self.y + (z - self.z) * self.ty


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Curves in the SciFi, f64[n]; dz = z - Z_REFERENCE.

    x(z) = x + tx dz + quadratic dz^2 + cubic dz^3, y(z) = y + ty dz.
    """

    x: FloatArray
    tx: FloatArray
    quadratic: FloatArray
    cubic: FloatArray
    y: FloatArray
    ty: FloatArray

    @classmethod
    def through(cls, z: FloatArray, x: FloatArray, y: FloatArray) -> Self:
        """Least squares to x, y f64[n_z, n] at z f64[n_z]."""
        dz = (z - Z_REFERENCE) / _METRE
        x0, tx, quadratic, cubic = np.linalg.lstsq(dz[:, None] ** np.arange(4), x, rcond=None)[0]
        y0, ty = np.linalg.lstsq(dz[:, None] ** np.arange(2), y, rcond=None)[0]
        return cls(x0, tx / _METRE, quadratic / _METRE**2, cubic / _METRE**3, y0, ty / _METRE)

    def x_at(self, z: FloatArray | float) -> FloatArray:
        """x at z."""
        dz = z - Z_REFERENCE
        return self.x + dz * (self.tx + dz * (self.quadratic + dz * self.cubic))

    def y_at(self, z: FloatArray | float) -> FloatArray:
        """y at z."""
        return self.y + (z - Z_REFERENCE) * self.ty


def sine(tx: FloatArray, ty: FloatArray) -> FloatArray:
    """The sine of the angle in x, momentum in x over momentum: the field changes it by the same amount for all
    slopes."""
    return tx / np.sqrt(1.0 + tx * tx + ty * ty)


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """Flights of particles that cross every layer of the SciFi; s f64[n] in c/GeV, x and y f64[12, n] at layer_z;
    ut_x f64[4, n] at the layers of the UT."""

    s: FloatArray
    velo: Line
    ut: Line
    ut_x: FloatArray
    layer_z: FloatArray
    x: FloatArray
    y: FloatArray
    behind: Curve

    @classmethod
    def fly(cls, field: Field, layer_z: FloatArray, n: int, *, skip: int = 0) -> Self:
        """n evenly spread particles in the field of polarity up, without those that miss the SciFi; the first `skip`
        are left out."""
        states, s = Origins().draw(n, Z_VELO, skip=skip)
        planes = np.array([*UT_LAYER_Z[:-1], Z_UT, UT_LAYER_Z[-1], *layer_z])
        path = fly(field, states, s, Z_VELO, planes)
        of_ut, path = path[:_N_UT_PLANES], path[_N_UT_PLANES:]
        x, y = path[:, 0], path[:, 1]
        first = _N_LAYERS_OF_FIRST
        kept = (
            (np.abs(x[:first]) < _MAX_X_OF_FIRST).all(axis=0)
            & (np.abs(x[first:]) < _MAX_X).all(axis=0)
            & (np.abs(y) < _MAX_Y).all(axis=0)
        )
        x, y = x[:, kept], y[:, kept]
        velo, ut = Line.of(states[:, kept], Z_VELO), Line.of(of_ut[-2][:, kept], Z_UT)
        ut_x = np.delete(of_ut[:, 0], -2, axis=0)[:, kept]
        return cls(s[kept], velo, ut, ut_x, layer_z, x, y, Curve.through(layer_z, x, y))

    @property
    def p(self) -> FloatArray:
        """Momentum, GeV."""
        return 1.0 / np.abs(self.s)

    @property
    def weight(self) -> FloatArray:
        """Weight of each track in fits, f64[n]: scattering blurs slow tracks, so they need less accuracy."""
        return 1.0 / (1.0 + np.square(3.0 * self.s))
