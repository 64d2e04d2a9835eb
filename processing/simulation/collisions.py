"""Particles of proton-proton collisions at 13-14 TeV, as far as a vertex detector sees them.

No physics generator: spectra and rates are simple shapes whose parameters were set by eye so that multiplicities,
angles and momenta look like LHCb's own simulated minimum-bias events (the velo-truth minbias set and the truth of the
seven full events in ../shared/data). Units: mm, MeV.
"""

from dataclasses import dataclass

import numpy as np

from hltnode.processing.simulation.velo_particles import (
    FloatArray,
    Int64Array,
    ParticleColumns,
)

# Luminous region, standard deviations in mm, from the collisions of the seven full events.
SIGMA_XY = 0.030
SIGMA_Z = 63.0

# Charged particles of a collision over all angles below: most collisions are inelastic and spread exponentially, the
# others (diffraction) leave a few particles at most.
_INELASTIC_FRACTION = 0.78
_MEAN_INELASTIC = 51.5
_MEAN_DIFFRACTIVE = 1.0
# Collisions that make something heavy are hard ones, with so many more.
_MEAN_UNDERLYING = 40.0

# Pseudorapidity: flat, falling off near _ETA_EDGE; the range with |eta| < _ETA_MIN never reaches the VELO.
_ETA_MIN, _ETA_EDGE, _ETA_FALL = 0.8, 5.6, 0.6
_ETA_GRID = np.linspace(_ETA_MIN, 8.0, 400)
_ETA_DENSITY = 1.0 / (1.0 + np.exp((_ETA_GRID - _ETA_EDGE) / _ETA_FALL))
# At small angles material is met at a slant: interactions and conversions grow with this power of 1 / sin(angle).
_SLANT_POWER = 0.5
_SLANT_DENSITY = _ETA_DENSITY * np.cosh(_ETA_GRID) ** _SLANT_POWER
_ETA_CUMULATIVE, _SLANT_CUMULATIVE = (np.cumsum(density) / density.sum() for density in (_ETA_DENSITY, _SLANT_DENSITY))

# Transverse momentum: log-normal.
_PT_MEDIAN, _PT_SPREAD = 360.0, 0.82

LIGHT_MM_PER_NS = 299.792458

_PION, _KAON, _PROTON, _ELECTRON, _MUON = 211, 321, 2212, 11, 13
MASS = {_PION: 139.57, _KAON: 493.68, _PROTON: 938.27, _ELECTRON: 0.511, _MUON: 105.66}
_PROMPT_PIDS = np.array([_PION, _KAON, _PROTON, _MUON])
_PROMPT_FRACTIONS = np.array([0.80, 0.11, 0.088, 0.002])

# Photons that convert in the material, and prompt hadrons that interact there, per charged particle.
_CONVERSION_FRACTION = 0.22
_PHOTON_PT_MEDIAN, _PHOTON_PT_SPREAD = 130.0, 1.1
_CONVERSION_KICK = 1.0  # MeV across the photon's direction
_INTERACTION_FRACTION, _MOST_SLANT = 0.028, 3.5  # at right angles, and how much more at the smallest
_INTERACTION_DAUGHTERS = 3.2
_INTERACTION_P_MEDIAN, _INTERACTION_KICK_MEDIAN, _INTERACTION_SPREAD = 600.0, 280.0, 0.8
# Electrons that prompt particles knock out of the material, per charged particle; their momenta (median, MeV, and
# spread of the logarithm) and the tangent of their angle to the particle.
_KNOCK_ON_FRACTION = 0.10
_KNOCK_ON_P, _KNOCK_ON_SPREAD, _KNOCK_ON_TANGENT = 5.0, 0.6, 0.55
# Particles that decay leave no hits and are not listed, but their daughters name them: by keys from here on.
FIRST_NEUTRAL_KEY = 1_000_000
# Distances from the beam (mm) at which particles meet material: RF foil and sensors.
_MATERIAL_RADII = (4.0, 40.0)


@dataclass(frozen=True, slots=True)
class Decay:
    """A particle that flies and decays into two charged ones: mean number per collision, mass (MeV), c tau (mm)."""

    per_collision: float
    pid: int
    mass: float
    c_tau: float
    pt_median: float
    daughters: tuple[int, int]


# Lifetimes and masses: Particle Data Group. The B stands for all decays of b hadrons, the D0 for those of charm.
DECAYS = (
    Decay(3.4, 310, 497.6, 26.84, 500.0, (_PION, -_PION)),
    Decay(0.7, 3122, 1115.7, 78.9, 700.0, (_PROTON, -_PION)),
    Decay(0.47, 421, 1864.8, 0.123, 1200.0, (-_KAON, _PION)),
    Decay(0.06, 511, 5279.7, 0.455, 4000.0, (_KAON, -_PION)),
)
_BEAUTY, _CHARM, _STRANGE = [511], [421], [310, 3122]
_DECAY_PID = np.array([decay.pid for decay in DECAYS])
_DECAY_MASS, _DECAY_LENGTH, _DECAY_PT = np.array([(it.mass, it.c_tau, it.pt_median) for it in DECAYS]).T
_DAUGHTERS = np.array([decay.daughters for decay in DECAYS])
_DAUGHTER_MASSES = np.array([[MASS[abs(pid)] for pid in decay.daughters] for decay in DECAYS])


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedCollisions:
    """The collisions of an event, at `positions` f64[n, 3] (mm), and its charged particles.

    The first len(collision) particles come straight from the collision of that number (i64); the others do not.
    """

    positions: FloatArray
    particles: ParticleColumns
    collision: Int64Array


def generate(
    rng: np.random.Generator, nu: float, beamline: tuple[float, float], *, at_least: int = 0
) -> SimulatedCollisions:
    """One event: Poisson(nu) collisions along the luminous region and what comes out of them.

    There are `at_least` so many hard ones among them, which come first.
    """
    n = max(int(rng.poisson(nu)), at_least)
    spread = np.array([SIGMA_XY, SIGMA_XY, SIGMA_Z])
    collisions = rng.normal(size=(n, 3)) * spread + np.array([*beamline, 0.0])
    inelastic = rng.random(n) < _INELASTIC_FRACTION
    inelastic[:at_least] = True
    multiplicity = rng.poisson(rng.exponential(np.where(inelastic, _MEAN_INELASTIC, _MEAN_DIFFRACTIVE)))
    multiplicity[:at_least] += rng.poisson(_MEAN_UNDERLYING, at_least)
    collision = np.repeat(np.arange(n), multiplicity)
    prompt = _prompt_particles(rng, collisions[collision])
    parts = [
        prompt,
        _conversions(rng, collisions, multiplicity),
        _knock_on_electrons(rng, prompt),
        _interactions(rng, prompt),
        _decay_products(rng, collisions[inelastic]),
    ]
    return SimulatedCollisions(collisions, ParticleColumns.join(parts), collision)


def _prompt_particles(rng: np.random.Generator, origin: FloatArray) -> ParticleColumns:
    n = len(origin)
    momentum = _momenta(rng, n, _PT_MEDIAN, _PT_SPREAD)
    charge = rng.integers(0, 2, n) * 2 - 1
    pid = rng.choice(_PROMPT_PIDS, n, p=_PROMPT_FRACTIONS) * charge
    return ParticleColumns.of(origin, momentum, np.where(np.abs(pid) == _MUON, -pid, pid), charge)


def _momenta(
    rng: np.random.Generator,
    n: int,
    pt_median: float | FloatArray,
    pt_spread: float,
    eta_cumulative: FloatArray = _ETA_CUMULATIVE,
) -> FloatArray:
    """Momenta f64[n, 3] with a spectrum of angles (the common one) and a log-normal transverse momentum."""
    eta = np.interp(rng.random(n), eta_cumulative, _ETA_GRID) * (rng.integers(0, 2, n) * 2 - 1)
    pt = rng.lognormal(np.log(pt_median), pt_spread, n)
    phi = rng.uniform(-np.pi, np.pi, n)
    return np.stack([pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta)], axis=1)


def _meet_material(rng: np.random.Generator, origin: FloatArray, momentum: FloatArray) -> FloatArray:
    """Points on the lines at a random distance from the beam where there is foil or silicon."""
    radius = rng.uniform(*_MATERIAL_RADII, len(origin))
    return origin + momentum * (radius / np.hypot(momentum[:, 0], momentum[:, 1]))[:, None]


def _conversions(rng: np.random.Generator, collisions: FloatArray, multiplicity: Int64Array) -> ParticleColumns:
    """Electron pairs of converted photons: nearly collinear with the photon, sharing its energy evenly spread."""
    origin = np.repeat(collisions, rng.poisson(_CONVERSION_FRACTION * multiplicity), axis=0)
    n = len(origin)
    photon = _momenta(rng, n, _PHOTON_PT_MEDIAN, _PHOTON_PT_SPREAD, _SLANT_CUMULATIVE)
    share = rng.uniform(0.05, 0.95, n)[:, None]
    kick = rng.normal(0.0, _CONVERSION_KICK, (n, 3))
    momentum = np.concatenate([photon * share + kick, photon * (1 - share) - kick])
    charge = np.repeat([-1, 1], n)
    vertex = np.tile(_meet_material(rng, origin, photon), (2, 1))
    return ParticleColumns.of(vertex, momentum, -charge * _ELECTRON, charge, mother=22)


def _knock_on_electrons(rng: np.random.Generator, prompt: ParticleColumns) -> ParticleColumns:
    """Electrons thrown out of the material by prompt particles, which fly on."""
    hit = np.flatnonzero(rng.random(len(prompt)) < _KNOCK_ON_FRACTION)
    vertex = _meet_material(rng, prompt.origin[hit], prompt.momentum[hit])
    direction = prompt.momentum[hit] / prompt.p[hit, None]
    direction += _KNOCK_ON_TANGENT * np.cross(direction, _unit_vectors(rng, len(hit)))
    p = rng.lognormal(np.log(_KNOCK_ON_P), _KNOCK_ON_SPREAD, len(hit))
    momentum = p[:, None] * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    charge = np.full(len(hit), -1)
    return ParticleColumns.of(vertex, momentum, -charge * _ELECTRON, charge, mother=prompt.pid[hit], mother_key=hit)


def _interactions(rng: np.random.Generator, prompt: ParticleColumns) -> ParticleColumns:
    """Hadrons thrown out of the material by prompt ones; these end there (their `z_end` is set)."""
    slant = np.minimum((prompt.p / np.maximum(prompt.pt, 1e-3 * prompt.p)) ** _SLANT_POWER, _MOST_SLANT)
    hit = np.flatnonzero(rng.random(len(prompt)) < _INTERACTION_FRACTION * slant)
    vertex = _meet_material(rng, prompt.origin[hit], prompt.momentum[hit])
    prompt.z_end[hit] = vertex[:, 2]
    mother = np.repeat(np.arange(len(hit)), 1 + rng.poisson(_INTERACTION_DAUGHTERS - 1, len(hit)))
    n = len(mother)
    p = rng.lognormal(np.log(_INTERACTION_P_MEDIAN), _INTERACTION_SPREAD, n)
    kick = rng.lognormal(np.log(_INTERACTION_KICK_MEDIAN), _INTERACTION_SPREAD, n)
    direction = prompt.momentum[hit][mother] / prompt.p[hit][mother, None]
    across = np.cross(direction, _unit_vectors(rng, n))
    momentum = p[:, None] * direction + kick[:, None] * across
    charge = rng.integers(0, 2, n) * 2 - 1
    pid = rng.choice([_PION, _PROTON], n, p=[0.7, 0.3]) * charge
    return ParticleColumns.of(
        vertex[mother], momentum, pid, charge, mother=prompt.pid[hit][mother], mother_key=hit[mother]
    )


def _unit_vectors(rng: np.random.Generator, n: int) -> FloatArray:
    vectors = rng.normal(size=(n, 3))
    lengths: FloatArray = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


def _decay_products(rng: np.random.Generator, collisions: FloatArray) -> ParticleColumns:
    """Both daughters of all particles of DECAYS: exponential flight, isotropic decay in the rest frame."""
    number = rng.poisson([decay.per_collision for decay in DECAYS], (len(collisions), len(DECAYS)))
    kind = np.repeat(np.tile(np.arange(len(DECAYS)), len(collisions)), number.ravel())
    origin = np.repeat(collisions, number.sum(axis=1), axis=0)
    n = len(kind)
    mother = _momenta(rng, n, _DECAY_PT[kind], _PT_SPREAD)
    flight = rng.exponential(_DECAY_LENGTH[kind])
    vertex = origin + mother * (flight / _DECAY_MASS[kind])[:, None]
    daughters = two_body_decay(rng, mother, _DECAY_MASS[kind], *_DAUGHTER_MASSES.T[:, kind])
    sign = rng.integers(0, 2, n) * 2 - 1  # particle or antiparticle
    pid = np.concatenate(sign * _DAUGHTERS.T[:, kind])
    kind, sign = np.tile(kind, 2), np.tile(sign, 2)
    key = FIRST_NEUTRAL_KEY + np.tile(np.arange(n), 2)
    products = ParticleColumns.of(
        np.tile(vertex, (2, 1)),
        np.concatenate(daughters),
        pid,
        np.sign(pid),
        mother=sign * _DECAY_PID[kind],
        mother_key=key,
    )
    for flag, family in (
        (products.from_beauty, _BEAUTY),
        (products.from_charm, _CHARM),
        (products.from_strange, _STRANGE),
    ):
        flag[:] = np.isin(_DECAY_PID[kind], family)
    heavy = products.from_beauty | products.from_charm
    products.dom_key[heavy] = key[heavy]
    products.dom_pid[heavy] = products.mother[heavy]
    products.dom_pt[heavy] = np.tile(np.hypot(mother[:, 0], mother[:, 1]), 2)[heavy]
    products.dom_tau[heavy] = np.tile(flight / LIGHT_MM_PER_NS, 2)[heavy]
    return products


def two_body_decay(
    rng: np.random.Generator,
    mother: FloatArray,
    mass: float | FloatArray,
    first_mass: float | FloatArray,
    second_mass: float | FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Momenta f64[n, 3] of both daughters of mothers of momenta f64[n, 3], isotropic in the rest frame.

    Masses (MeV) are those of all decays or of each.
    """
    first_energy = (mass**2 + first_mass**2 - second_mass**2) / (2 * mass)
    in_rest_frame = (_unit_vectors(rng, len(mother)).T * np.sqrt(first_energy**2 - first_mass**2)).T
    return (
        _boost(in_rest_frame, first_energy, mother, mass),
        _boost(-in_rest_frame, mass - first_energy, mother, mass),
    )


def _boost(momentum: FloatArray, energy: float | FloatArray, frame: FloatArray, mass: float | FloatArray) -> FloatArray:
    """Momenta given in the rest frame of particles of momentum `frame`, seen from the laboratory."""
    frame_energy = np.sqrt((frame**2).sum(axis=1) + mass**2)
    along = (momentum * frame).sum(axis=1)
    gain: FloatArray = (along / (frame_energy + mass) + energy) / mass
    return momentum + frame * gain[:, None]
