"""Flights of charged particles from the VELO through the dipole field to the SciFi, without material.

States are (x, y, tx, ty): mm and slopes. `s` is polarity times charge over momentum, in c/GeV: with it a flight does
not depend on the polarity.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.magnet import MEV_PER_TESLA_MM, Field

FloatArray = NDArray[np.float64]

MEV = 1000.0
"""1 GeV in MeV."""

# Runge-Kutta step, mm: half of it changes no state by more than 0.01 mm above 1.5 GeV (tests/processing/lhcb/
# parametrisation/test_flights.py).
STEP = 100.0
# Particles that leave this region or are bent by more are not measured.
_MAX_X, _MAX_Y, _MAX_SLOPE = 4000.0, 2600.0, 1.2
# Number of flights computed together; their field values fit into the cache of a core.
_CHUNK = 1024


def fly(field: Field, states: FloatArray, s: FloatArray, first_z: float, planes: FloatArray) -> FloatArray:
    """The states f64[n_planes, 4, n] at ascending planes of flights with the `states` f64[4, n] at first_z.

    `field` is that of polarity up. NaN for flights that leave the magnet earlier. Runge-Kutta of fourth order in z.
    """
    chunks = range(0, states.shape[1], _CHUNK)
    found = [_fly(field, states[:, at : at + _CHUNK], s[at : at + _CHUNK], first_z, planes) for at in chunks]
    return np.concatenate(found, axis=2)


def _fly(field: Field, states: FloatArray, s: FloatArray, first_z: float, planes: FloatArray) -> FloatArray:
    at_planes = np.full((len(planes), *states.shape), np.nan)
    flying = np.arange(states.shape[1])
    now = states.copy()
    factor = MEV_PER_TESLA_MM / MEV * s
    z = first_z
    for number, plane in enumerate(planes.tolist()):
        n_steps = int(np.ceil((plane - z) / STEP - 1e-9))
        for i in range(n_steps):
            at, step = z + (plane - z) * i / n_steps, (plane - z) / n_steps
            now = _step(field, now, factor, at, step)
            kept = (np.abs(now[0]) < _MAX_X) & (np.abs(now[1]) < _MAX_Y) & (np.abs(now[2:]) < _MAX_SLOPE).all(axis=0)
            now, factor, flying = now[:, kept], factor[kept], flying[kept]
        at_planes[number][:, flying] = now
        z = plane
    return at_planes


def _step(field: Field, state: FloatArray, factor: FloatArray, z: float, step: float) -> FloatArray:
    k1 = _derivative(field, state, factor, z)
    k2 = _derivative(field, state + 0.5 * step * k1, factor, z + 0.5 * step)
    k3 = _derivative(field, state + 0.5 * step * k2, factor, z + 0.5 * step)
    k4 = _derivative(field, state + step * k3, factor, z + step)
    return state + step / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)


def _derivative(field: Field, state: FloatArray, factor: FloatArray, z: float) -> FloatArray:
    x, y, tx, ty = state
    bx, by, bz = field(x, y, z)
    bent = factor * np.sqrt(1.0 + tx * tx + ty * ty)
    return np.stack(
        [
            tx,
            ty,
            bent * (tx * ty * bx - (1.0 + tx * tx) * by + ty * bz),
            bent * ((1.0 + ty * ty) * bx - tx * ty * by - tx * bz),
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """Ranges of the start of flights: slopes up to `tx`, `ty` (steeper ones meet the poles); z of the origin from
    `first_z` to `last_z` and x, y within `off_axis` (mm) of the beam; momenta from `p_min` (GeV)."""

    tx: float = 0.30
    ty: float = 0.24
    first_z: float = -200.0
    last_z: float = 250.0
    off_axis: float = 3.0
    p_min: float = 1.5

    def draw(self, n: int, z: float, *, skip: int = 0) -> tuple[FloatArray, FloatArray]:
        """n states f64[4, n] at z, and s f64[n]: evenly spread points, the same at each call; the first `skip` points
        are left out. |s| is denser at small values."""
        even = _evenly(n, 6, skip)
        tx, ty = self.tx * (2.0 * even[0] - 1.0), self.ty * (2.0 * even[1] - 1.0)
        s = 2.0 * even[2] - 1.0
        s = np.sign(s) * np.abs(s) ** 1.5 / self.p_min
        away = z - (self.first_z + even[3] * (self.last_z - self.first_z))
        x, y = self.off_axis * (2.0 * even[4:6] - 1.0)
        return np.stack([x + tx * away, y + ty * away, tx, ty]), s


def _evenly(n: int, dimensions: int, skip: int) -> FloatArray:
    """Points of the unit cube, f64[dimensions, n], of low discrepancy: multiples of powers of the number r with
    r^(dimensions + 1) = r + 1, the golden ratio in one dimension."""
    ratio = 2.0
    for _ in range(60):
        ratio = (1.0 + ratio) ** (1.0 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    points: FloatArray = (0.5 + steps[:, None] * np.arange(skip + 1, skip + n + 1)) % 1.0
    return points
