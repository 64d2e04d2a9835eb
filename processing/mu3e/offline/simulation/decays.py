"""Decays of muons at rest: where they stop, and the electrons and positrons that they give.

Muons have no polarisation. Neutrinos are not kept.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.mu3e.detector_constants import (
    ELECTRON_MASS,
    MUON_MASS,
    TARGET_HALF_LENGTH,
    TARGET_RADIUS,
)
from hltnode.processing.mu3e.offline.simulation.phase_space import boosted, directions, momentum_of_two, phase_space
from hltnode.protocol.mu3e.hit_banks import DecayKind

Array = NDArray[np.float64]

BEAM_WIDTH = 8.0
"""mm: standard deviation of the beam in x and in y, a choice of this simulation."""
MAX_ENERGY = (MUON_MASS**2 + ELECTRON_MASS**2) / (2.0 * MUON_MASS)
"""MeV, of the positron of a Michel decay."""
LEAST_BHABHA_ENERGY = 5.0
"""MeV of kinetic energy that a simulated Bhabha electron has at least; softer ones reach no third layer."""
_FRACTIONS = np.linspace(0.0, 1.0, 16_385)


@dataclass(frozen=True, slots=True)
class Products:
    """Electrons and positrons of decays. decay: i64[particles], rising. charge: i64[particles], -1 or +1.

    momentum: f64[particles, 3], MeV/c.
    """

    decay: NDArray[np.int64]
    charge: NDArray[np.int64]
    momentum: Array


def stopping_points(rng: np.random.Generator, n: int) -> Array:
    """Places on a hollow double cone in mm, f64[n, 3]: half of the muons stop in the upstream cone.

    The beam is a Gaussian around the axis. A muon stops where it meets the surface.
    """
    reach = 1.0 - np.exp(-0.5 * (TARGET_RADIUS / BEAM_WIDTH) ** 2)
    radius = BEAM_WIDTH * np.sqrt(-2.0 * np.log1p(-reach * rng.random(n)))
    turn = rng.uniform(0.0, 2.0 * np.pi, n)
    side = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    along = side * (1.0 - radius / TARGET_RADIUS) * TARGET_HALF_LENGTH
    return np.column_stack([radius * np.cos(turn), radius * np.sin(turn), along])


def michel_energies(rng: np.random.Generator, n: int) -> Array:
    """Energies of positrons in MeV, f64[n]: density x^2 (3 - 2 x) of the fraction x of MAX_ENERGY, above their mass."""
    fraction = np.interp(rng.random(n), _FRACTIONS**3 * (2.0 - _FRACTIONS), _FRACTIONS)
    return np.maximum(fraction * MAX_ENERGY, ELECTRON_MASS)


def products_of(rng: np.random.Generator, kinds: NDArray[np.int64]) -> Products:
    """The electrons and positrons of decays of the kinds i64[decays] (DecayKind)."""
    makers = {
        DecayKind.MICHEL: _michel,
        DecayKind.SIGNAL: _signal,
        DecayKind.CONVERSION: _conversion,
        DecayKind.BHABHA: _bhabha,
    }
    decay, charge, momentum = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty((0, 3))]
    for kind, make in makers.items():
        of_kind = np.flatnonzero(kinds == kind)
        charges, momenta = make(rng, len(of_kind))
        decay.append(np.repeat(of_kind, len(charges)))
        charge.append(np.tile(charges, len(of_kind)))
        momentum.append(momenta.reshape(-1, 3))
    order = np.argsort(np.concatenate(decay), kind="stable")
    return Products(np.concatenate(decay)[order], np.concatenate(charge)[order], np.concatenate(momentum)[order])


def _michel(rng: np.random.Generator, n: int) -> tuple[list[int], Array]:
    momentum = np.sqrt(michel_energies(rng, n) ** 2 - ELECTRON_MASS**2)
    return [1], momentum[:, None] * directions(rng, n)


def _signal(rng: np.random.Generator, n: int) -> tuple[list[int], Array]:
    masses = np.full(3, ELECTRON_MASS)
    made = phase_space(rng, n, MUON_MASS, lambda trials: np.tile(masses, (trials, 1)), masses)
    return [1, -1, 1], made[..., :3]


def _conversion(rng: np.random.Generator, n: int) -> tuple[list[int], Array]:
    """Phase space of e+ nu nu and a virtual photon with the density dm / m of its mass, which decays isotropically."""
    lowest = 2.0 * ELECTRON_MASS
    span = np.log((MUON_MASS - ELECTRON_MASS) / lowest)

    def draw(trials: int) -> Array:
        masses = np.zeros((trials, 4))
        masses[:, 0] = lowest * np.exp(span * rng.random(trials))
        masses[:, 1] = ELECTRON_MASS
        return masses

    made = phase_space(rng, n, MUON_MASS, draw, np.array([lowest, ELECTRON_MASS, 0.0, 0.0]))
    photon = made[:, 0]
    mass = np.sqrt(np.maximum(photon[:, 3] ** 2 - (photon[:, :3] ** 2).sum(1), lowest**2))
    electron = np.full(n, ELECTRON_MASS)
    momentum = momentum_of_two(mass, electron, electron)
    away = momentum[:, None] * directions(rng, n)
    energy = np.hypot(momentum, ELECTRON_MASS)
    pair = np.stack([np.column_stack([away, energy]), np.column_stack([-away, energy])], axis=1)
    pair = boosted(pair, photon[:, :3], photon[:, 3])
    return [1, -1, 1], np.stack([made[:, 1, :3], pair[:, 0, :3], pair[:, 1, :3]], axis=1)


def bhabha_density(fraction: Array, gamma: Array) -> Array:
    """Cross-section of Bhabha scattering by the fraction of the kinetic energy that the electron gets, times its square
    and beta^2: 1 for small fractions (GEANT4 physics reference manual, "Positron-electron (Bhabha) scattering")."""
    y = 1.0 / (gamma + 1.0)
    beta2 = 1.0 - 1.0 / gamma**2
    b1, b2 = 2.0 - y**2, (1.0 - 2.0 * y) * (3.0 + y**2)
    b4 = (1.0 - 2.0 * y) ** 3
    b3 = b4 + (1.0 - 2.0 * y) ** 2
    density: Array = 1.0 + beta2 * fraction * (-b1 + fraction * (b2 + fraction * (-b3 + fraction * b4)))
    return density


def _bhabha(rng: np.random.Generator, n: int) -> tuple[list[int], Array]:
    """A Michel positron that hits an electron at rest. Positrons that are too soft are drawn again."""
    kept: list[Array] = [np.empty((0, 2, 3))]
    missing = n
    while missing > 0:
        trials = 4 * missing + 16
        energy = michel_energies(rng, trials)
        kinetic = energy - ELECTRON_MASS
        # The density 1 / (kinetic fraction^2) between `least` and 1; its integral goes with 1 - least.
        least = LEAST_BHABHA_ENERGY / np.maximum(kinetic, LEAST_BHABHA_ENERGY)
        fraction = least / (1.0 - rng.random(trials) * (1.0 - least))
        good = rng.random(trials) < (1.0 - least) * bhabha_density(fraction, energy / ELECTRON_MASS)
        momentum = np.sqrt(energy**2 - ELECTRON_MASS**2)
        knocked = fraction * kinetic
        of_electron = np.sqrt(knocked * (knocked + 2.0 * ELECTRON_MASS))
        cosine = np.minimum(knocked * (energy + ELECTRON_MASS) / np.maximum(momentum * of_electron, 1e-12), 1.0)
        along = directions(rng, trials)
        across = np.cross(along, directions(rng, trials))
        across /= np.linalg.norm(across, axis=1)[:, None]
        electron = of_electron[:, None] * (cosine[:, None] * along + np.sqrt(1.0 - cosine**2)[:, None] * across)
        positron = momentum[:, None] * along - electron
        kept.append(np.stack([positron, electron], axis=1)[good][:missing])
        missing -= len(kept[-1])
    return [1, -1], np.concatenate(kept)
