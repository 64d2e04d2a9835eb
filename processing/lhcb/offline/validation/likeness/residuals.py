"""Residuals of truth hits against simple curves: how well hits agree with the paths of their particles.

Long particles of p > 10 GeV, no electrons: straight in the VELO, nearly so up to the UT (magnet), a cubic in the SciFi.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.validation.checker.particles import ELECTRON
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.protocol.lhcb.lhcb_id import without_orientation
from hltnode.protocol.lhcb.truth_columns import McParticleColumns

# Below this momentum (MeV) scattering, not the detector, dominates the residuals.
_MIN_P = 10_000.0
# Beyond the coefficients of a curve, a particle needs two more hits.
_SPARE_HITS = 2
# Scale of z (mm) that keeps the normal equations well conditioned.
_Z_SCALE = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class TruthHits:
    """Hits of particles: `owner` i64[n] the row of the particle, `hit` i64[n] the row of the hit."""

    owner: Int64Array
    hit: Int64Array

    @classmethod
    def find(
        cls, ids: NDArray[np.uint32], n_ids: Int64Array, wanted: NDArray[np.bool_], hit_ids: NDArray[np.uint32]
    ) -> Self:
        """The decoded hits (their LHCbIDs: hit_ids) of the wanted particles, from their lists of ids; ids without a hit
        are left out."""
        owner = np.repeat(np.arange(len(n_ids)), n_ids)
        chosen = wanted[owner]
        owner, of_owner = owner[chosen], without_orientation(ids[chosen])
        keys = without_orientation(hit_ids)
        order = np.argsort(keys, kind="stable")
        place = np.minimum(np.searchsorted(keys[order], of_owner), max(len(keys) - 1, 0))
        if len(keys) == 0:
            return cls(owner[:0], owner[:0])
        hit = order[place]
        found = keys[hit] == of_owner
        return cls(owner[found], hit[found])


def fast_long_particles(particles: McParticleColumns) -> NDArray[np.bool_]:
    """Long particles of p > 10 GeV, no electrons."""
    values = particles.values
    fast: NDArray[np.bool_] = (values["is_long"] != 0) & (values["p"] > _MIN_P) & (np.abs(values["pid"]) != ELECTRON)
    return fast


def fit_curves(owner: Int64Array, z: Float64Array, x: Float64Array, degree: int, n_owners: int) -> Float64Array:
    """Least-squares polynomials x(z), one per owner: f64[n_owners, degree + 1], nan for owners with too few hits.

    Evaluate with `curve_at`.
    """
    powers = (z / _Z_SCALE)[:, None] ** np.arange(degree + 1)
    n = np.bincount(owner, minlength=n_owners)
    matrix = np.zeros((n_owners, degree + 1, degree + 1))
    right = np.zeros((n_owners, degree + 1))
    np.add.at(matrix, owner, powers[:, :, None] * powers[:, None, :])
    np.add.at(right, owner, powers * x[:, None])
    enough = n >= degree + 1 + _SPARE_HITS
    # Hits in too few planes do not determine a curve.
    enough[enough] = np.linalg.cond(matrix[enough]) < 1e13
    found = np.full((n_owners, degree + 1), np.nan)
    found[enough] = np.linalg.solve(matrix[enough], right[enough][:, :, None])[:, :, 0]
    return found


def curve_at(coefficients: Float64Array, z: Float64Array) -> Float64Array:
    """x at z of curves, row by row."""
    powers = (z / _Z_SCALE)[:, None] ** np.arange(coefficients.shape[1])
    values: Float64Array = (coefficients * powers).sum(axis=1)
    return values
