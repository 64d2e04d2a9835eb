"""Particles from the material: converted photons, knock-on electrons, and products of interactions. Units: mm, MeV."""

import numpy as np

from hltnode.processing.lhcb.offline.simulation.generation.spectra import (
    ELECTRON,
    PION,
    PROTON,
    SLANT_CUMULATIVE,
    SLANT_POWER,
    NewParticles,
    choice_of,
    log_normal,
    momenta,
    signs,
)
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.processing.offline.particles.decays import unit_vectors

# Photons that convert in the material, and prompt hadrons that interact there, per charged particle.
_CONVERSION_FRACTION = 0.22
_PHOTON_PT_MEDIAN, _PHOTON_PT_SPREAD = 130.0, 1.1
_END_OF_VELO, _CONVERSIONS_BEHIND_VELO = 770.0, 0.5
_CONVERSION_KICK = 1.0  # MeV across the photon's direction
_INTERACTION_FRACTION, _MOST_SLANT = 0.028, 3.5  # at right angles, and how much more at the smallest
_INTERACTION_DAUGHTERS = 3.2
_INTERACTION_P_MEDIAN, _INTERACTION_KICK_MEDIAN, _INTERACTION_SPREAD = 600.0, 280.0, 0.8
# Knock-on electrons from the material, per charged prompt particle; their momenta (median, MeV, and
# spread of the logarithm) and the tangent of their angle to the particle.
_KNOCK_ON_FRACTION = 0.10
_KNOCK_ON_P, _KNOCK_ON_SPREAD, _KNOCK_ON_TANGENT = 5.0, 0.6, 0.55
# Distances from the beam (mm) at which particles cross material: RF foil and sensors.
_MATERIAL_RADII = (4.0, 40.0)


def _points_in_material(
    random: EventRandom, event: Int64Array, origin: Float64Array, momentum: Float64Array
) -> Float64Array:
    """Points on the lines at a random distance from the beam at foil or silicon."""
    first, last = _MATERIAL_RADII
    radius = first + (last - first) * random.uniform(event)
    return origin + momentum * (radius / np.hypot(momentum[:, 0], momentum[:, 1]))[:, None]


def conversions(
    random: EventRandom, event: Int64Array, positions: Float64Array, multiplicity: Int64Array
) -> NewParticles:
    """Electron pairs of converted photons: nearly collinear with the photon, with a uniform share of its energy."""
    source = np.repeat(
        np.arange(len(event)),
        random.poisson_by_row(event, np.multiply(_CONVERSION_FRACTION, multiplicity, dtype=np.float64)),
    )
    event = event[source]
    photon = momenta(random, event, _PHOTON_PT_MEDIAN, _PHOTON_PT_SPREAD, SLANT_CUMULATIVE)
    share = 0.05 + 0.9 * random.uniform(event)[:, None]
    kick = _CONVERSION_KICK * random.normal(event, 3)
    momentum = np.concatenate([photon * share + kick, photon * (1 - share) - kick])
    charge = np.repeat([-1, 1], len(event))
    place = _points_in_material(random, event, positions[source], photon)
    # The material that small angles cross is thinner behind the VELO.
    kept = np.tile((place[:, 2] < _END_OF_VELO) | random.chance(event, _CONVERSIONS_BEHIND_VELO), 2)
    particles = ParticleColumns.of(np.tile(place, (2, 1)), momentum, -charge * ELECTRON, charge, mother=22)
    return NewParticles(np.tile(event, 2)[kept], particles.take(kept))


def knock_on_electrons(random: EventRandom, prompt: NewParticles, key: Int64Array) -> NewParticles:
    """Electrons knocked out of the material by prompt particles, which continue."""
    hit = np.flatnonzero(random.chance(prompt.event, _KNOCK_ON_FRACTION))
    event, mothers = prompt.event[hit], prompt.particles.take(hit)
    vertex = _points_in_material(random, event, mothers.origin, mothers.momentum)
    direction = mothers.momentum / mothers.p[:, None]
    direction += _KNOCK_ON_TANGENT * np.cross(direction, unit_vectors(random.normal(event, 3)))
    p = log_normal(random, event, _KNOCK_ON_P, _KNOCK_ON_SPREAD)
    momentum = p[:, None] * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    charge = np.full(len(hit), -1)
    return NewParticles(
        event,
        ParticleColumns.of(vertex, momentum, -charge * ELECTRON, charge, mother=mothers.pid, mother_key=key[hit]),
    )


def interactions(random: EventRandom, prompt: NewParticles, key: Int64Array) -> NewParticles:
    """Hadrons produced in the material by prompt ones, which end there (their `z_end` is set)."""
    p, pt = prompt.particles.p, prompt.particles.pt
    slant = np.minimum((p / np.maximum(pt, 1e-3 * p)) ** SLANT_POWER, _MOST_SLANT)
    hit = np.flatnonzero(random.chance(prompt.event, _INTERACTION_FRACTION * slant))
    vertex = _points_in_material(
        random, prompt.event[hit], prompt.particles.origin[hit], prompt.particles.momentum[hit]
    )
    prompt.particles.z_end[hit] = vertex[:, 2]
    more = random.poisson_by_row(prompt.event[hit], np.full(len(hit), _INTERACTION_DAUGHTERS - 1))
    vertex, mother = np.repeat(vertex, 1 + more, axis=0), np.repeat(hit, 1 + more)
    event, mothers = prompt.event[mother], prompt.particles.take(mother)
    p = log_normal(random, event, _INTERACTION_P_MEDIAN, _INTERACTION_SPREAD)
    kick = log_normal(random, event, _INTERACTION_KICK_MEDIAN, _INTERACTION_SPREAD)
    direction = mothers.momentum / mothers.p[:, None]
    across = np.cross(direction, unit_vectors(random.normal(event, 3)))
    momentum = p[:, None] * direction + kick[:, None] * across
    charge = signs(random, event)
    pid = choice_of(random, event, np.array([PION, PROTON]), np.array([0.7, 0.3])) * charge
    return NewParticles(
        event, ParticleColumns.of(vertex, momentum, pid, charge, mother=mothers.pid, mother_key=key[mother])
    )
