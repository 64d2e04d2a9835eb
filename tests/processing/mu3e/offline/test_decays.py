"""Decays of stopped muons: conservation laws, spectra, and the surface of the target."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.mu3e.detector_constants import (
    ELECTRON_MASS,
    MUON_MASS,
    TARGET_HALF_LENGTH,
    TARGET_RADIUS,
)
from hltnode.processing.mu3e.offline.simulation.decays import (
    LEAST_BHABHA_ENERGY,
    MAX_ENERGY,
    bhabha_density,
    michel_energies,
    products_of,
    stopping_points,
)
from hltnode.processing.mu3e.offline.simulation.phase_space import boosted, directions, phase_space
from hltnode.protocol.mu3e.hit_banks import DecayKind

N = 20_000


def decays_of(kind: DecayKind, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Charges i64[n, k], momenta f64[n, k, 3] and energies f64[n, k] of N decays of a kind."""
    made = products_of(np.random.default_rng(seed), np.full(N, kind))
    assert (np.diff(made.decay) >= 0).all()
    momentum = made.momentum.reshape(N, -1, 3)
    energy = np.sqrt((momentum**2).sum(-1) + ELECTRON_MASS**2)
    return made.charge.reshape(N, -1), momentum, energy


def assert_distributed(values: np.ndarray, edges: np.ndarray, cumulative: np.ndarray) -> None:
    """The values follow a distribution that is known at edges: chi2 below the bin count plus five deviations."""
    expected = np.diff(cumulative) * len(values)
    chi2 = ((np.histogram(values, edges)[0] - expected) ** 2 / expected).sum()
    assert chi2 < len(expected) + 5.0 * (2.0 * len(expected)) ** 0.5


def test_signal_has_no_momentum_the_mass_of_the_muon_and_two_positrons() -> None:
    charge, momentum, energy = decays_of(DecayKind.SIGNAL)
    assert (charge == [1, -1, 1]).all()
    assert np.abs(momentum.sum(1)).max() < 1e-6
    np.testing.assert_allclose(energy.sum(1), MUON_MASS, rtol=1e-9)


def test_signal_fills_the_dalitz_plot_evenly() -> None:
    """For light products the energies of phase space have the density x dx; each product has the same."""
    _, _, energy = decays_of(DecayKind.SIGNAL)
    edges = np.linspace(0.05, 0.95, 10)
    for i in range(3):
        fraction = 2.0 * energy[:, i] / MUON_MASS
        inside = (fraction >= edges[0]) & (fraction < edges[-1])
        whole = (edges**2 - edges[0] ** 2) / (edges[-1] ** 2 - edges[0] ** 2)
        assert_distributed(fraction[inside], edges, whole)


def test_michel_positrons_have_the_spectrum_of_the_formula_and_no_direction() -> None:
    charge, momentum, energy = decays_of(DecayKind.MICHEL)
    assert (charge == 1).all()
    edges = np.linspace(0.05, 1.0, 20)
    cumulative = edges**3 * (2.0 - edges)
    fraction = energy[:, 0] / MAX_ENERGY
    inside = fraction >= edges[0]
    assert_distributed(fraction[inside], edges, (cumulative - cumulative[0]) / (1.0 - cumulative[0]))
    along = momentum[:, 0] / np.linalg.norm(momentum[:, 0], axis=1)[:, None]
    for axis in range(3):
        assert_distributed(along[:, axis], np.linspace(-1, 1, 11), np.linspace(0, 1, 11))


def test_michel_positrons_leave_room_for_two_neutrinos() -> None:
    energy = michel_energies(np.random.default_rng(2), N)
    momentum = np.sqrt(energy**2 - ELECTRON_MASS**2)
    assert ((MUON_MASS - energy) - momentum > -1e-9).all()
    assert energy.min() >= ELECTRON_MASS


def test_conversions_leave_room_for_two_neutrinos_and_have_light_pairs() -> None:
    charge, momentum, energy = decays_of(DecayKind.CONVERSION)
    assert (charge == [1, -1, 1]).all()
    assert (MUON_MASS - energy.sum(1) - np.linalg.norm(momentum.sum(1), axis=1) > -1e-6).all()
    pair = np.sqrt(energy[:, 1:].sum(1) ** 2 - (momentum[:, 1:].sum(1) ** 2).sum(1))
    assert pair.min() > 2.0 * ELECTRON_MASS * (1.0 - 1e-6)
    # A density of dm / m, cut off by phase space: as many between 1.1 and 2.2 MeV as between 2.2 and 4.4 MeV.
    low, high = ((pair > 1.1) & (pair < 2.2)).sum(), ((pair > 2.2) & (pair < 4.4)).sum()
    assert abs(low - high) < 0.12 * low


def test_bhabha_pairs_conserve_energy_and_momentum_of_a_michel_positron() -> None:
    charge, momentum, energy = decays_of(DecayKind.BHABHA)
    assert (charge == [1, -1]).all()
    before = energy.sum(1) - ELECTRON_MASS
    np.testing.assert_allclose((momentum.sum(1) ** 2).sum(1), before**2 - ELECTRON_MASS**2, rtol=1e-6)
    assert before.max() <= MAX_ENERGY * (1 + 1e-9)
    assert (energy[:, 1] - ELECTRON_MASS).min() > LEAST_BHABHA_ENERGY * (1 - 1e-9)
    # Soft electrons are the most frequent ones.
    knocked = energy[:, 1] - ELECTRON_MASS
    assert (knocked < 10).sum() > 3 * (knocked > 20).sum() > 0


def test_bhabha_scattering_is_that_of_rutherford_for_soft_electrons() -> None:
    gamma = np.array([20.0, 100.0])
    np.testing.assert_allclose(bhabha_density(np.array([1e-6, 1e-6]), gamma), 1.0, atol=1e-5)
    # Massless: (1 - f + f^2)^2.
    fraction = np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(bhabha_density(fraction, np.full(3, 1e6)), (1 - fraction + fraction**2) ** 2, rtol=1e-4)


def test_muons_stop_on_both_cones_more_often_near_the_axis() -> None:
    places = stopping_points(np.random.default_rng(3), N)
    radius = np.hypot(places[:, 0], places[:, 1])
    np.testing.assert_allclose(radius / TARGET_RADIUS + np.abs(places[:, 2]) / TARGET_HALF_LENGTH, 1.0, atol=1e-9)
    upstream = (places[:, 2] < 0).mean()
    assert abs(upstream - 0.5) < 5 * 0.5 / N**0.5
    # A Gaussian of 8 mm.
    inside = (1 - np.exp(-0.5)) / (1 - np.exp(-0.5 * (TARGET_RADIUS / 8.0) ** 2))
    assert abs((radius < 8.0).mean() - inside) < 5 * (inside * (1 - inside) / N) ** 0.5


def test_boosts_keep_masses_and_turn_back() -> None:
    rng = np.random.default_rng(5)
    momentum = 20.0 * directions(rng, 50)
    energy = np.full(50, 30.0)
    vectors = rng.normal(size=(50, 2, 4))
    vectors[..., 3] = np.sqrt((vectors[..., :3] ** 2).sum(-1) + 1.0)
    there = boosted(vectors, momentum, energy)
    np.testing.assert_allclose(there[..., 3] ** 2 - (there[..., :3] ** 2).sum(-1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(boosted(there, -momentum, energy), vectors, atol=1e-9)


@pytest.mark.parametrize("masses", [[0.5, 0.0, 0.0], [30.0, 20.0, 0.5], [1.0, 2.0, 3.0, 4.0]])
def test_phase_space_conserves_energy_and_momentum_for_any_masses(masses: list[float]) -> None:
    of = np.array(masses)
    made = phase_space(np.random.default_rng(6), 500, 100.0, lambda n: np.tile(of, (n, 1)), of)
    assert made.shape == (500, len(masses), 4)
    np.testing.assert_allclose(made.sum(1), [[0, 0, 0, 100.0]] * 500, atol=1e-9)
    np.testing.assert_allclose(made[..., 3] ** 2 - (made[..., :3] ** 2).sum(-1), [of**2] * 500, atol=1e-8)
