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


def three_body_decay(
    rng: np.random.Generator,
    mother: Float64Array,
    mass: Float64Array,
    first_mass: Float64Array,
    second_mass: Float64Array,
    third_mass: Float64Array,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Momenta f64[n, 3] of three daughters, by phase space, of mothers of momenta f64[n, 3] and masses f64[n] (MeV).

    The mass of the first two together has the density of the product of the momenta in both two-body decays (Particle
    Data Group, Review of Particle Physics, "Kinematics").
    """
    lowest, highest = first_mass + second_mass, mass - third_mass
    # Each momentum is largest at one end of the range, so their product is nowhere larger than this one.
    bound = _momentum(mass, lowest, third_mass) * _momentum(highest, first_mass, second_mass)
    pair_mass = lowest.copy()
    left = np.arange(len(mass))
    while len(left):
        tried = rng.uniform(lowest[left], highest[left])
        density = _momentum(mass[left], tried, third_mass[left])
        density *= _momentum(tried, first_mass[left], second_mass[left])
        taken = rng.uniform(size=len(left)) * bound[left] < density
        pair_mass[left[taken]] = tried[taken]
        left = left[~taken]
    pair, third = two_body_decay(rng.normal(size=mother.shape), mother, mass, pair_mass, third_mass)
    first, second = two_body_decay(rng.normal(size=mother.shape), pair, pair_mass, first_mass, second_mass)
    return first, second, third


def _momentum(mass: Float64Array, first_mass: Float64Array, second_mass: Float64Array) -> Float64Array:
    """Momentum of both daughters in the rest frame."""
    energy = (mass**2 + first_mass**2 - second_mass**2) / (2 * mass)
    momentum: Float64Array = np.sqrt(np.maximum(energy**2 - first_mass**2, 0.0))
    return momentum


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
