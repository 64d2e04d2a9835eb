"""Particles of simulated collisions: primaries, V0 decays, secondaries from material."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.detector_constants import (
    CHARGED_KAON_MASS,
    CHARGED_PION_MASS,
    ELECTRON_MASS,
    LAMBDA_LENGTH,
    LAMBDA_MASS,
    NEUTRAL_KAON_LENGTH,
    NEUTRAL_KAON_MASS,
    PROTON_MASS,
)
from hltnode.protocol.alice.tpc_banks import Origin

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_RAPIDITY = 1.3
"""Pseudorapidity of simulated particles; a track of more than 0.95 leaves the TPC before its last row."""
MIN_PT, MAX_PT = 0.05, 30.0
"""GeV/c. Softer particles do not reach the first row."""
VERTEX_SPREAD_Z = 5.0
"""cm: standard deviation of the place of collisions along the beam."""
SPECTRUM_POWER = 7.0
_SPECIES = ((211, 0.83, CHARGED_PION_MASS), (321, 0.11, CHARGED_KAON_MASS), (2212, 0.06, PROTON_MASS))
"""PDG number, share among primaries, mass."""
MASSES = {
    11: ELECTRON_MASS,
    211: CHARGED_PION_MASS,
    321: CHARGED_KAON_MASS,
    2212: PROTON_MASS,
    310: NEUTRAL_KAON_MASS,
    3122: LAMBDA_MASS,
}
MATERIAL_RADII = np.array([2.9, 3.9, 7.6, 15.0, 23.9, 38.0, 43.0, 61.0, 79.0])
"""cm: beam pipe, six layers of the silicon tracker, two walls of the TPC (K. Aamodt et al., "The ALICE experiment at
the CERN LHC", JINST 3 (2008) S08002, sections 3 and 4)."""
MATERIAL_MOMENTUM = 0.12
"""GeV/c: mean momentum of a particle that is made in the material."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Particles:
    """Particles of an event. pdg, mother, collision, origin: i64[n]; vertex (cm), momentum (GeV/c): f64[n, 3]."""

    pdg: Integers
    mother: Integers
    vertex: Floats
    momentum: Floats
    collision: Integers
    origin: Integers

    def __len__(self) -> int:
        return len(self.pdg)

    @property
    def charge(self) -> Floats:
        """+1, -1, and 0 for a V0."""
        neutral = np.isin(np.abs(self.pdg), (310, 3122))
        # The electron has a positive number.
        return np.where(neutral, 0.0, np.sign(self.pdg) * np.where(np.abs(self.pdg) == 11, -1.0, 1.0))

    @property
    def mass(self) -> Floats:
        """GeV/c2."""
        return masses(self.pdg)


def masses(pdg: Integers) -> Floats:
    """Mass of each particle in GeV/c2."""
    numbers = np.array(sorted(MASSES))
    return np.array([MASSES[number] for number in numbers.tolist()])[np.searchsorted(numbers, np.abs(pdg))]


def joined(several: Sequence[Particles]) -> Particles:
    """Groups of particles one after the other. A `mother` is a place in its own group before, among all after."""
    starts = np.cumsum([0, *(len(each) for each in several)])
    together = with_daughters(several)
    shift = np.repeat(starts[:-1], [len(each) for each in several])
    return replace(together, mother=np.where(together.mother >= 0, together.mother + shift, -1))


def with_daughters(several: Sequence[Particles]) -> Particles:
    """Groups of particles one after the other. A `mother` is a place among all, before and after."""
    return Particles(
        **{field.name: np.concatenate([getattr(each, field.name) for each in several]) for field in fields(Particles)}
    )


def transverse_momenta(rng: np.random.Generator, n: int, mass: Floats, temperature: float) -> Floats:
    """pT in GeV/c by the spectrum of Tsallis, pT (1 + (mT - m) / (power T))^-power, one mass for each particle."""
    grid = np.geomspace(MIN_PT, MAX_PT, 400)
    drawn = np.empty(n)
    u = rng.random(n)
    for value in np.unique(mass):
        density = grid * (1.0 + (np.hypot(grid, value) - value) / (SPECTRUM_POWER * temperature)) ** -SPECTRUM_POWER
        area = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid))])
        of_mass = mass == value
        drawn[of_mass] = np.interp(u[of_mass] * area[-1], area, grid)
    return drawn


def _momenta(rng: np.random.Generator, pt: Floats) -> Floats:
    phi = rng.uniform(0.0, 2.0 * np.pi, len(pt))
    eta = rng.uniform(-MAX_RAPIDITY, MAX_RAPIDITY, len(pt))
    return np.column_stack([pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta)])


def directions(rng: np.random.Generator, n: int) -> Floats:
    """Unit vectors in all directions, f64[n, 3]."""
    drawn = rng.standard_normal((n, 3))
    unit: Floats = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def primaries(rng: np.random.Generator, n: int, temperature: float, place: float, collision: int) -> Particles:
    """n charged primaries of a collision at z = place."""
    numbers, shares, of_species = (np.array(column) for column in zip(*_SPECIES, strict=True))
    species = rng.choice(len(numbers), n, p=shares)
    momentum = _momenta(rng, transverse_momenta(rng, n, of_species[species], temperature))
    return Particles(
        pdg=numbers[species] * rng.choice([-1, 1], n),
        mother=np.full(n, -1),
        vertex=np.tile([0.0, 0.0, place], (n, 1)),
        momentum=momentum,
        collision=np.full(n, collision),
        origin=np.full(n, int(Origin.PRIMARY)),
    )


def boosted(at_rest: Floats, mass: Floats, frame: Floats, frame_mass: Floats) -> Floats:
    """Momenta in the laboratory of particles with momenta at_rest in the frame of a moving mother, f64[n, 3]."""
    energy = np.sqrt((at_rest**2).sum(1) + mass**2)
    frame_energy = np.sqrt((frame**2).sum(1) + frame_mass**2)
    along = (at_rest * frame).sum(1)
    factor = along / (frame_mass * (frame_energy + frame_mass)) + energy / frame_mass
    moving: Floats = at_rest + factor[:, None] * frame
    return moving


def v0_decays(rng: np.random.Generator, n: int, temperature: float, place: float, collision: int) -> Particles:
    """n decays K0S -> pi+ pi- and Lambda -> p pi- with its antiparticle: the mothers, then their daughters.

    The mothers are 70 % K0S.
    """
    is_kaon = rng.random(n) < 0.7
    sign = np.where(rng.random(n) < 0.5, 1, -1)
    pdg = np.where(is_kaon, 310, 3122 * sign)
    mass = masses(pdg)
    momentum = _momenta(rng, transverse_momenta(rng, n, mass, 1.5 * temperature))
    length = rng.exponential(np.where(is_kaon, NEUTRAL_KAON_LENGTH, LAMBDA_LENGTH))
    vertex = np.tile([0.0, 0.0, place], (n, 1))
    decay = vertex + momentum / mass[:, None] * length[:, None]
    first = np.where(is_kaon, 211, 2212 * sign)
    second = np.where(is_kaon, -211, -211 * sign)
    m1, m2 = masses(first), masses(second)
    size = np.sqrt((mass**2 - (m1 + m2) ** 2) * (mass**2 - (m1 - m2) ** 2)) / (2.0 * mass)
    at_rest = size[:, None] * directions(rng, n)
    return Particles(
        pdg=np.concatenate([pdg, first, second]),
        mother=np.concatenate([np.full(n, -1), np.arange(n), np.arange(n)]),
        vertex=np.concatenate([vertex, decay, decay]),
        momentum=np.concatenate(
            [momentum, boosted(at_rest, m1, momentum, mass), boosted(-at_rest, m2, momentum, mass)]
        ),
        collision=np.full(3 * n, collision),
        origin=np.repeat([int(Origin.PRIMARY), int(Origin.DECAY)], [n, 2 * n]),
    )


def from_material(rng: np.random.Generator, n: int, place: float, collision: int) -> Particles:
    """n particles from interactions in the material: 60 % electrons and positrons, 30 % pions, 10 % protons."""
    kind = rng.choice([11, 211, 2212], n, p=[0.6, 0.3, 0.1])
    pdg = kind * np.where((kind == 2212) | (rng.random(n) < 0.5), 1, -1)
    phi = rng.uniform(0.0, 2.0 * np.pi, n)
    radius = rng.choice(MATERIAL_RADII, n)
    eta = rng.uniform(-MAX_RAPIDITY, MAX_RAPIDITY, n)
    vertex = np.column_stack([radius * np.cos(phi), radius * np.sin(phi), place + radius * np.sinh(eta)])
    outward = vertex - [0.0, 0.0, place]
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    # Around the direction from the collision, with a wide spread.
    towards = outward + 0.5 * directions(rng, n)
    towards /= np.linalg.norm(towards, axis=1, keepdims=True)
    size = np.where(kind == 2212, 0.3, 0.03) + rng.exponential(MATERIAL_MOMENTUM, n)
    return Particles(
        pdg=pdg,
        mother=np.full(n, -1),
        vertex=vertex,
        momentum=size[:, None] * towards,
        collision=np.full(n, collision),
        origin=np.full(n, int(Origin.MATERIAL)),
    )
