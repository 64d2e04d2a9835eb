"""Charged particles of kaon decays in flight: momenta and slopes."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.na62.detector_constants import (
    KAON_MASS,
    KAON_MOMENTUM,
    MAX_MOMENTUM,
    MIN_MOMENTUM,
    MUON_MASS,
    NEUTRAL_PION_MASS,
    PION_MASS,
)

Floats = NDArray[np.float64]

_ENERGY = float(np.hypot(KAON_MOMENTUM, KAON_MASS))
_GAMMA, _GAMMA_BETA = _ENERGY / KAON_MASS, KAON_MOMENTUM / KAON_MASS


class Decay(IntEnum):
    """The decays, by the number that truth has."""

    TRACKS = 0
    """No decay: tracks of any slope, for curves against the number of rings."""
    MUON = 1
    TWO_PIONS = 2
    THREE_PIONS = 3


FRACTIONS = {Decay.MUON: 0.6356, Decay.TWO_PIONS: 0.2067, Decay.THREE_PIONS: 0.0558}
"""Branching fractions of K+ -> mu nu, pi+ pi0, pi+ pi+ pi- (Particle Data Group, Review of Particle Physics 2024)."""


def _momentum(mass: float, first: float, second: float) -> float:
    """Momentum of the products of a decay into two at rest."""
    return float(np.sqrt((mass**2 - (first + second) ** 2) * (mass**2 - (first - second) ** 2)) / (2.0 * mass))


def _direction(rng: np.random.Generator) -> Floats:
    cosine, angle = rng.uniform(-1.0, 1.0), rng.uniform(0.0, 2.0 * np.pi)
    sine = np.sqrt(1.0 - cosine**2)
    return np.array([sine * np.cos(angle), sine * np.sin(angle), cosine])


def _boosted(momenta: Floats, mass: float) -> Floats:
    """Momenta in the laboratory from momenta in the rest frame of the kaon, f64[particles, 3]."""
    energies = np.sqrt((momenta**2).sum(1) + mass**2)
    along = _GAMMA * momenta[:, 2] + _GAMMA_BETA * energies
    return np.column_stack([momenta[:, :2], along])


def _three_pions(rng: np.random.Generator) -> Floats:
    """Momenta at rest of three pions with a flat Dalitz plot."""
    while True:
        squares = rng.uniform((2 * PION_MASS) ** 2, (KAON_MASS - PION_MASS) ** 2, 2)
        # Energy of the pion that is not in the pair.
        energies = (KAON_MASS**2 + PION_MASS**2 - squares) / (2 * KAON_MASS)
        energies = np.append(energies, KAON_MASS - energies.sum())
        if energies.min() <= PION_MASS:
            continue
        p = np.sqrt(energies**2 - PION_MASS**2)
        cosine = (p[2] ** 2 - p[0] ** 2 - p[1] ** 2) / (2 * p[0] * p[1])
        if abs(cosine) < 1.0:
            break
    axis = _direction(rng)
    other = _direction(rng)
    across = np.cross(axis, other)
    across /= np.linalg.norm(across)
    first = p[0] * axis
    second = p[1] * (cosine * axis + np.sqrt(1.0 - cosine**2) * across)
    return np.array([first, second, -first - second])


def decay_momenta(rng: np.random.Generator, decay: Decay) -> tuple[Floats, float]:
    """Momenta in GeV/c of the charged products in the laboratory, f64[particles, 3], and their mass.

    At least one product is in the range of the RICH.
    """
    while True:
        if decay is Decay.THREE_PIONS:
            at_rest, mass = _three_pions(rng), PION_MASS
        else:
            mass, other = (MUON_MASS, 0.0) if decay is Decay.MUON else (PION_MASS, NEUTRAL_PION_MASS)
            at_rest = (_momentum(KAON_MASS, mass, other) * _direction(rng))[None]
        momenta = _boosted(at_rest, mass)
        size = np.linalg.norm(momenta, axis=1)
        if ((size >= MIN_MOMENTUM) & (size <= MAX_MOMENTUM)).any():
            return momenta, mass


def drawn_decay(rng: np.random.Generator) -> Decay:
    """A decay with the probabilities of FRACTIONS, relative to their sum."""
    fractions = np.array(list(FRACTIONS.values()))
    return list(FRACTIONS)[int(rng.choice(len(fractions), p=fractions / fractions.sum()))]
