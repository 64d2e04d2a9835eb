"""The energy loss that the fit of long tracks adds to the measured momentum is that of simulated particles."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.magnet import UP, Magnet, bending_power
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.geometry.velo_field import VeloField
from hltnode.processing.lhcb.offline.simulation.response.velo_response import VeloResponse
from hltnode.processing.lhcb.offline.simulation.transport.propagation import FIRST_Z, Flights, Propagation
from hltnode.processing.lhcb.parametrisation.energy_loss import median_energy_loss
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns

N = 2000
# MeV: particles that nothing bends or scatters.
P = 1e6


@pytest.fixture(scope="module")
def loss_in_the_velo() -> tuple[np.ndarray, np.ndarray]:
    """Slopes [N, 2] and energy loss (MeV) of simulated particles from z = 0, evenly spread in pseudorapidity."""
    rng = np.random.default_rng(8)
    angle, azimuth = np.exp(rng.uniform(np.log(0.015), np.log(0.3), N)), rng.uniform(-np.pi, np.pi, N)
    slopes = angle[:, None] * np.stack([np.cos(azimuth), np.sin(azimuth)], axis=1)
    pz = P / np.sqrt(1.0 + (slopes**2).sum(axis=1))
    momentum = np.column_stack([slopes * pz[:, None], pz])
    particles = ParticleColumns.of(np.zeros((N, 3)), momentum, np.full(N, 211), np.ones(N, int))
    response = VeloResponse(VeloGeometry.builtin(), VeloField(0.0, 0.0))
    fired = response.fire(EventRandom([np.random.default_rng(1)]), np.zeros(N, np.int64), particles)
    return slopes, fired.energy_loss


def loss_up_to(z_end: float, slopes: np.ndarray, propagation: Propagation) -> np.ndarray:
    """Energy loss (MeV) of particles behind the VELO, up to z_end."""
    (tx, ty), z = np.ascontiguousarray(slopes.T), np.full(N, FIRST_Z)
    column = np.ones(N)
    flights = Flights(
        event=np.zeros(N, np.int64),
        x=tx * z,
        y=ty * z,
        z=z,
        tx=tx.copy(),
        ty=ty.copy(),
        p=P * column,
        charge=column,
        mass=139.57 * column,
        z_end=z_end * column,
    )
    propagation.propagate(EventRandom([np.random.default_rng(2)]), flights)
    return P - flights.p


def test_the_loss_is_the_median_of_simulated_particles_over_the_field(
    loss_in_the_velo: tuple[np.ndarray, np.ndarray],
) -> None:
    slopes, total = loss_in_the_velo
    field = Magnet(UP).field
    whole = bending_power(field, 0.0, 9500.0)
    # A magnet measures the momentum averaged over its field: each stretch counts with its bending power.
    propagation = Propagation(Magnet(UP), np.array([9403.0]))
    mean, before = total.copy(), np.zeros(N)
    for z in np.arange(900.0, 9500.0, 200.0).tolist():
        behind = loss_up_to(z + 200.0, slopes, propagation)
        mean += 0.5 * (before + behind) * bending_power(field, z, z + 200.0) / whole
        before = behind
    assert median_energy_loss(field) == pytest.approx(np.median(mean), abs=0.15)
    # The mean over directions is 1 MeV more.
    assert np.mean(mean) > np.median(mean) + 0.7


def test_the_file_has_the_loss_of_the_builtin_detector() -> None:
    assert LongTrackParameters.builtin().energy_loss == pytest.approx(median_energy_loss(Magnet(UP).field), abs=0.01)
