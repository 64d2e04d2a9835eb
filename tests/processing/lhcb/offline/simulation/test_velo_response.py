"""In the simulated VELO the field bends particles, and the material takes energy from them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ideal_velo import N_ROWS
from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.geometry.velo_field import VeloField
from hltnode.processing.lhcb.offline.simulation.response.pixel_clusters import COLUMN_SHIFT, SENSOR_SHIFT
from hltnode.processing.lhcb.offline.simulation.response.velo_response import FiredPixels, VeloResponse
from hltnode.processing.lhcb.parametrisation.flights import fly
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns

FIELD = VeloField.of(Magnet.builtin())
GEOMETRY = VeloGeometry.builtin()
N = 400
P = 4000.0


def particles(charge: int) -> ParticleColumns:
    """Particles of one momentum in all directions of the acceptance, from the middle of the VELO."""
    rng = np.random.default_rng(3)
    slopes = rng.uniform(-0.15, 0.15, (N, 2)) + 0.02
    pz = P / np.sqrt(1.0 + (slopes**2).sum(axis=1))
    momentum = np.column_stack([slopes * pz[:, None], pz])
    return ParticleColumns.of(np.zeros((N, 3)), momentum, np.full(N, 211 * charge), np.full(N, charge))


def fired(charge: int, field: VeloField = FIELD) -> FiredPixels:
    random = EventRandom([np.random.default_rng(5)])
    return VeloResponse(GEOMETRY, field).fire(random, np.zeros(N, np.int64), particles(charge))


def places(of: FiredPixels) -> NDArray[np.float64]:
    """x, y and z of the pixels in the middle of the crossings, [n, 3]."""
    channel = of.channels[of.middle]
    column, row = channel >> COLUMN_SHIFT & 0x3FF, channel & (N_ROWS - 1)
    return GEOMETRY.local_to_global(channel >> SENSOR_SHIFT & 0xFF, column, row)


def test_opposite_charges_are_bent_apart_as_in_the_field() -> None:
    plus, minus = fired(1), fired(-1)
    assert np.array_equal(plus.particle[:50], minus.particle[:50])
    states = particles(1)
    tx, ty = states.momentum[:, :2].T / states.momentum[:, 2]
    start = np.stack([np.zeros(N), np.zeros(N), tx, ty])
    # `fly` takes the field of polarity up; the built-in detector has polarity down.
    ((x, _, slope, _),) = fly(Magnet(1.0).field, start, np.full(N, -1e3 / P), 0.0, np.array([770.0]))
    of_field = 2.0 * (x - 770.0 * tx), 2.0 * (slope - tx)
    kick = plus.kick[:, 0] - minus.kick[:, 0]
    moved = 770.0 * kick - (plus.kick_z[:, 0] - minus.kick_z[:, 0])
    assert moved == pytest.approx(of_field[0], rel=0.05)
    assert kick == pytest.approx(of_field[1], rel=0.05)


def test_hits_are_bent_apart_by_the_square_of_their_distance() -> None:
    plus, minus, straight = fired(1), fired(-1), fired(1, VeloField(0.0, 0.0))
    for bent, sign in ((plus, 1.0), (minus, -1.0)):
        strength = sign * -0.299792458 / P
        place, before = places(bent), places(straight)
        same = min(len(place), len(before))
        far = (before[:same, 2] > 500.0) & (np.abs(place[:same] - before[:same]) < 3.0).all(axis=1)
        z = before[:same, 2][far]
        expected = strength * (FIELD.by * z**2 / 2 + FIELD.gradient * z**3 / 6)
        assert np.median(place[:same, 0][far] - before[:same, 0][far]) == pytest.approx(np.median(expected), rel=0.15)


def test_a_particle_loses_energy_in_each_module_that_it_crosses() -> None:
    one = fired(1)
    n_crossed = np.bincount(one.particle, minlength=N)
    per_module = one.energy_loss / np.maximum(n_crossed, 1)
    seen = n_crossed > 5
    assert np.median(per_module[seen]) == pytest.approx(0.29, rel=0.1)  # MeV
    assert (one.energy_loss[n_crossed == 0] < 1.0).all()
