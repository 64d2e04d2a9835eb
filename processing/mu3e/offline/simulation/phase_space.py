"""Decays by phase space, many at once, as Raubold and Lynch (F. James, "Monte Carlo Phase Space", CERN 68-15)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def directions(rng: np.random.Generator, n: int) -> Array:
    """Isotropic unit vectors, f64[n, 3]."""
    cosine, turn = rng.uniform(-1.0, 1.0, n), rng.uniform(0.0, 2.0 * np.pi, n)
    sine = np.sqrt(1.0 - cosine**2)
    return np.column_stack([sine * np.cos(turn), sine * np.sin(turn), cosine])


def momentum_of_two(mass: Array, first: Array, second: Array) -> Array:
    """Momentum of both products of a decay at rest; 0 where it is not possible."""
    found: Array = np.sqrt(np.maximum((mass**2 - (first + second) ** 2) * (mass**2 - (first - second) ** 2), 0.0)) / (
        2.0 * mass
    )
    return found


def boosted(vectors: Array, momentum: Array, energy: Array) -> Array:
    """Four-vectors f64[n, k, 4] (px, py, pz, E) of a system at rest, seen where it has `momentum` and `energy`.

    momentum: f64[n, 3], energy: f64[n].
    """
    mass = np.sqrt(np.maximum(energy**2 - (momentum**2).sum(1), 1e-30))
    along = (vectors[..., :3] * momentum[:, None]).sum(-1)
    factor = along / (mass * (energy + mass))[:, None] + vectors[..., 3] / mass[:, None]
    moved = vectors[..., :3] + factor[..., None] * momentum[:, None]
    return np.concatenate([moved, ((energy[:, None] * vectors[..., 3] + along) / mass[:, None])[..., None]], axis=-1)


def phase_space(rng: np.random.Generator, n: int, mass: float, draw: Callable[[int], Array], least: Array) -> Array:
    """Four-vectors f64[n, k, 4] of n decays at rest into k >= 3 products, in MeV.

    draw: masses of the products in a number of trials, f64[trials, k], none smaller than `least`, f64[k]; that of the
    first one is not 0. Trials are kept by the density of phase space, so a distribution of masses is weighted with the
    room that it leaves.
    """
    bound = float(_weights(mass, least[None], _largest(mass, least[None]))[0])
    kept_masses = [np.empty((0, len(least)))]
    kept_inner = [np.empty((0, len(least)))]
    missing = n
    while missing > 0:
        masses = draw(4 * missing + 16)
        free = mass - masses.sum(1)
        steps = np.sort(rng.random((len(masses), masses.shape[1] - 2)), axis=1)
        fraction = np.column_stack([np.zeros(len(masses)), steps, np.ones(len(masses))])
        inner = np.cumsum(masses, axis=1) + fraction * free[:, None]
        weight = np.where(free > 0.0, _weights(mass, masses, (inner[:, 1:], inner[:, :-1])), 0.0)
        kept = rng.random(len(masses)) * bound < weight
        kept_masses.append(masses[kept][:missing])
        kept_inner.append(inner[kept][:missing])
        missing -= len(kept_masses[-1])
    return _products(rng, np.concatenate(kept_masses), np.concatenate(kept_inner))


def _largest(mass: float, masses: Array) -> tuple[Array, Array]:
    """Upper limits of the masses of the inner systems, and lower limits of what they decay to."""
    whole = np.cumsum(masses, axis=1)
    free = (mass - masses.sum(1))[:, None]
    return whole[:, 1:] + free, whole[:, :-1]


def _weights(mass: float, masses: Array, inner: tuple[Array, Array]) -> Array:
    free = np.maximum(mass - masses.sum(1), 0.0)
    result: Array = free ** (masses.shape[1] - 2) * momentum_of_two(inner[0], inner[1], masses[:, 1:]).prod(1)
    return result


def _products(rng: np.random.Generator, masses: Array, inner: Array) -> Array:
    n, k = masses.shape
    made = np.zeros((n, k, 4))
    made[:, 0, 3] = masses[:, 0]
    for i in range(1, k):
        momentum = momentum_of_two(inner[:, i], inner[:, i - 1], masses[:, i])
        away = momentum[:, None] * directions(rng, n)
        made[:, :i] = boosted(made[:, :i], away, np.hypot(momentum, inner[:, i - 1]))
        made[:, i, :3] = -away
        made[:, i, 3] = np.hypot(momentum, masses[:, i])
    return made
