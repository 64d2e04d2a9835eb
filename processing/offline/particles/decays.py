"""Kinematics of decays, and the numbers of the Particle Data Group that they need."""

import numpy as np

from hltnode.processing.offline.arrays import Float64Array

LIGHT_MM_PER_NS = 299.792458

MASS = {211: 139.57, 321: 493.68, 2212: 938.27, 11: 0.511, 13: 105.66}
"""Masses (MeV) of the charged particles that reach a detector, by their PDG ids."""


def two_body_decay(
    normal: Float64Array,
    mother: Float64Array,
    mass: float | Float64Array,
    first_mass: float | Float64Array,
    second_mass: float | Float64Array,
) -> tuple[Float64Array, Float64Array]:
    """Momenta f64[n, 3] of both daughters of mothers of momenta f64[n, 3], isotropic in the rest frame.

    `normal` f64[n, 3]: normal random numbers. Masses (MeV) are those of all decays or of each.
    """
    first_energy = (mass**2 + first_mass**2 - second_mass**2) / (2 * mass)
    in_rest_frame = (unit_vectors(normal).T * np.sqrt(first_energy**2 - first_mass**2)).T
    return (
        _boost(in_rest_frame, first_energy, mother, mass),
        _boost(-in_rest_frame, mass - first_energy, mother, mass),
    )


def _boost(
    momentum: Float64Array, energy: float | Float64Array, frame: Float64Array, mass: float | Float64Array
) -> Float64Array:
    """Momenta given in the rest frame of particles of momentum `frame`, seen from the laboratory."""
    frame_energy = np.sqrt((frame**2).sum(axis=1) + mass**2)
    along = (momentum * frame).sum(axis=1)
    gain: Float64Array = (along / (frame_energy + mass) + energy) / mass
    return momentum + frame * gain[:, None]


def unit_vectors(normal: Float64Array) -> Float64Array:
    """Unit vectors, uniform over all directions, from normal numbers [n, 3]."""
    unit: Float64Array = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return unit
