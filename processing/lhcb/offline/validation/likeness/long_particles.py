"""Long particles as tracking sees them: lines through their VELO hits, curves through their SciFi hits, and flights
from the one to the other through the magnet.

Particles of 2 < eta < 5. Units: mm, MeV.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.scifi import SciFiHitPositions
from hltnode.processing.lhcb.geometry.ut import UtHitPositions
from hltnode.processing.lhcb.offline.simulation.transport.propagation import FIRST_Z, Flights, LayerStates, Propagation
from hltnode.processing.lhcb.offline.validation.checker.particles import ELECTRON
from hltnode.processing.lhcb.offline.validation.likeness.momentum_formula import SCIFI_Z
from hltnode.processing.lhcb.offline.validation.likeness.residuals import TruthHits, fit_curves
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom
from hltnode.protocol.lhcb.lhcb_id import in_2022_scheme
from hltnode.protocol.lhcb.truth_columns import McParticleColumns

Lines = tuple[Float64Array, Float64Array]
"""Coefficients [n, 2] of lines x(z) and y(z), for `curve_at`."""

_LEAST_P = 3000.0
_ETA = (2.0, 5.0)

# x(z) in the SciFi: a + b d + c d^2 (1 + _CUBIC d), d = z - SCIFI_Z; fitted with the line y(z) to all hits of a
# particle, whose weights fall with their distance (mm).
_CUBIC = -0.28e-3
_ROBUST = 0.3
_ROUNDS = 4
# Hits of stereo layers have a larger slope dx/dy than this. A curve needs at least these numbers of hits.
STEREO_SLOPE = 0.01
_LEAST_X, _LEAST_STEREO = 4, 3


@dataclass(frozen=True, slots=True, eq=False)
class LongParticles:
    """Long particles of an event, one row each.

    `row` i64[n] of the truth; `p` f64[n], `charge` f64[n]; `line` f64[4, n]: x, y at z = 0 and slopes in the VELO, nan
    if it has too few hits there. `scifi`: the hits of each, `owner` counts these rows. `curve` f64[5, n]: x at SCIFI_Z,
    its slope, half its curvature, y at SCIFI_Z, its slope; nan for too few hits. `residual` f64 of each of these hits:
    x of the hit - curve.
    """

    row: Int64Array
    p: Float64Array
    charge: Float64Array
    line: Float64Array
    scifi: TruthHits
    curve: Float64Array
    residual: Float64Array

    @classmethod
    def of(
        cls,
        particles: McParticleColumns,
        line: tuple[Float64Array, Float64Array],
        scifi: SciFiHitPositions,
        wanted: Mask,
    ) -> Self:
        """The `wanted` particles; `line`: coefficients of x(z) and y(z) of all particles."""
        row = np.flatnonzero(wanted)
        found = TruthHits.find(in_2022_scheme(particles.scifi_ids), particles.n_scifi_ids, wanted, scifi.lhcb_id)
        hits = TruthHits(np.searchsorted(row, found.owner), found.hit)
        curve, residual = _fit_scifi(hits, scifi, len(row))
        (x, tx), (y, ty) = (of_axis[row].T for of_axis in line)
        return cls(
            row,
            particles.values["p"][row].astype(np.float64),
            particles.values["charge"][row].astype(np.float64),
            np.stack([x, y, tx / 1000.0, ty / 1000.0]),
            hits,
            curve,
            residual,
        )

    def behind(self, z: float) -> Float64Array:
        """x, y, tx, ty on the curve at z, f64[4, n]."""
        x, tx, bend, y, ty = self.curve
        d = z - SCIFI_Z
        return np.stack(
            [x + d * (tx + d * bend * (1 + _CUBIC * d)), y + d * ty, tx + d * bend * (2 + 3 * _CUBIC * d), ty]
        )


def long_hadrons(particles: McParticleColumns) -> Mask:
    """Long particles of p > 3 GeV and 2 < eta < 5, no electrons."""
    chosen: Mask = _long(particles) & (np.abs(particles.values["pid"]) != ELECTRON)
    return chosen


def long_electrons(particles: McParticleColumns) -> Mask:
    """Long electrons and positrons of p > 3 GeV and 2 < eta < 5."""
    chosen: Mask = _long(particles) & (np.abs(particles.values["pid"]) == ELECTRON)
    return chosen


def _long(particles: McParticleColumns) -> Mask:
    values = particles.values
    chosen: Mask = (
        (values["is_long"] != 0) & (values["p"] > _LEAST_P) & (values["eta"] > _ETA[0]) & (values["eta"] < _ETA[1])
    )
    return chosen


def velo_lines(particles: McParticleColumns, velo_ids: NDArray[np.uint32], position: Float64Array) -> Lines:
    """Lines x(z) and y(z) through the VELO hits of all particles seen there, to be evaluated with `curve_at`."""
    wanted = particles.values["has_velo"] != 0
    found = TruthHits.find(in_2022_scheme(particles.velo_ids), particles.n_velo_ids, wanted, velo_ids)
    x, y, z = position[found.hit].T
    return (
        fit_curves(found.owner, z, x, 1, len(wanted)),
        fit_curves(found.owner, z, y, 1, len(wanted)),
    )


def _fit_scifi(hits: TruthHits, scifi: SciFiHitPositions, n: int) -> tuple[Float64Array, Float64Array]:
    owner, hit = hits.owner, hits.hit
    x, z, dx_dy, dz_dy = scifi.x[hit], scifi.z[hit], scifi.dx_dy[hit], scifi.dz_dy[hit]
    stereo = np.abs(dx_dy) > STEREO_SLOPE
    n_stereo, n_all = (np.bincount(owner, weights, n) for weights in (stereo, None))
    enough = (n_stereo >= _LEAST_STEREO) & (n_all - n_stereo >= _LEAST_X)
    y, weight = np.zeros(len(x)), np.ones(len(x))
    curve, residual = np.full((n, 5), np.nan), np.full(len(x), np.nan)
    for _ in range(_ROUNDS):
        d = (z + dz_dy * y - SCIFI_Z) / 1000.0
        design = np.stack([np.ones_like(d), d, d * d * (1 + 1000.0 * _CUBIC * d), -dx_dy, -dx_dy * d], axis=1)
        matrix, right = np.zeros((n, 5, 5)), np.zeros((n, 5))
        np.add.at(matrix, owner, design[:, :, None] * (design * weight[:, None])[:, None, :])
        np.add.at(right, owner, design * (weight * x)[:, None])
        enough[enough] = np.linalg.cond(matrix[enough]) < 1e12
        curve[:] = np.nan
        curve[enough] = np.linalg.solve(matrix[enough], right[enough][:, :, None])[:, :, 0]
        of_hit = curve[owner]
        residual = x - (design * of_hit).sum(axis=1)
        y = np.nan_to_num(of_hit[:, 3] + of_hit[:, 4] * d)
        weight = 1.0 / (1.0 + np.nan_to_num(residual / _ROBUST) ** 2) ** 2
    return (curve / np.array([1.0, 1e3, 1e6, 1.0, 1e3])).T, residual


class MagnetFlight:
    """Follows long particles from the VELO, with their true momentum and without material, to UT and SciFi."""

    def __init__(self, magnet: Magnet, ut_z: Float64Array) -> None:
        """`ut_z` f64[4]: the layers of the UT."""
        self._ut_z = ut_z
        self._propagation = Propagation(magnet, np.append(ut_z, SCIFI_Z))

    def fly(self, particles: LongParticles) -> LayerStates:
        """Where the particles cross the layers of the UT and the plane SCIFI_Z; those without a line nowhere."""
        x, y, tx, ty = np.nan_to_num(particles.line)
        n = len(x)
        flights = Flights(
            event=np.zeros(n, dtype=np.int64),
            x=x + FIRST_Z * tx,
            y=y + FIRST_Z * ty,
            z=np.full(n, FIRST_Z),
            tx=tx,
            ty=ty,
            p=particles.p.copy(),
            charge=particles.charge.copy(),
            mass=np.ones(n),
            z_end=np.full(n, np.inf),
        )
        return self._propagation.propagate(EventRandom([np.random.default_rng(0)]), flights, scattering=False)

    def ut_residual(
        self, states: LayerStates, owner: Int64Array, hits: UtHitPositions, hit: Int64Array
    ) -> Float64Array:
        """x of UT hits - flight, mm; nan where the flight did not arrive. `owner`: rows of the flights."""
        layer = hits.layer[hit].astype(np.int64)
        at = layer, owner
        dz = hits.z[hit] - self._ut_z[layer]
        y = states.y[at] + states.ty[at] * dz
        x = states.x[at] + states.tx[at] * dz
        residual: Float64Array = hits.x[hit] + hits.dx_dy[hit] * y - x
        return np.where(states.reached[at], residual, np.nan)
