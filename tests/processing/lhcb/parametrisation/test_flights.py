"""Flights through the field."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from hltnode.processing.lhcb.geometry.magnet import UP, Magnet
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation import flights
from hltnode.processing.lhcb.parametrisation.flights import Origins, fly
from hltnode.processing.lhcb.parametrisation.forms import Z_VELO

PLANES = np.array([2642.0, 8520.0, 9400.0])
FIELD = Magnet(UP).field


def test_a_particle_of_infinite_momentum_flies_straight() -> None:
    states, _ = Origins().draw(20, Z_VELO)
    found = fly(FIELD, states, np.zeros(20), Z_VELO, PLANES)
    for plane, at in zip(PLANES, found, strict=True):
        np.testing.assert_allclose(at[:2], states[:2] + (plane - Z_VELO) * states[2:], rtol=1e-12)
        np.testing.assert_allclose(at[2:], states[2:], rtol=1e-12)


def test_half_the_step_moves_no_flight_by_a_tenth_of_a_hit_resolution(monkeypatch: pytest.MonkeyPatch) -> None:
    states, s = Origins().draw(200, Z_VELO)
    found = fly(FIELD, states, s, Z_VELO, PLANES)
    monkeypatch.setattr(flights, "STEP", 0.5 * flights.STEP)
    finer = fly(FIELD, states, s, Z_VELO, PLANES)
    assert (np.isnan(found) == np.isnan(finer)).all()
    assert np.nanquantile(np.abs(found - finer)[:, :2], 0.99) < 0.01


def test_mirrored_particles_fly_mirrored() -> None:
    states, s = Origins().draw(50, Z_VELO)
    found = fly(FIELD, states, s, Z_VELO, PLANES)
    in_y = np.array([1.0, -1.0, 1.0, -1.0])[:, None]
    np.testing.assert_allclose(fly(FIELD, in_y * states, s, Z_VELO, PLANES), in_y * found, atol=1e-6)
    in_x = -in_y
    np.testing.assert_allclose(fly(FIELD, in_x * states, -s, Z_VELO, PLANES), in_x * found, atol=1e-6)


def test_a_particle_flies_back_to_where_it_came_from() -> None:
    """Opposite charge and direction: seen from behind, the field is its mirror image in z."""

    def mirrored(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> NDArray[np.float64]:
        bx, by, bz = FIELD(x, y, -np.asarray(z))
        return np.stack([-bx, -by, bz])

    states, s = Origins(p_min=5.0).draw(20, Z_VELO)
    there = fly(FIELD, states, s, Z_VELO, np.array([9400.0]))[0]
    back = there * np.array([1.0, 1.0, -1.0, -1.0])[:, None]
    home = fly(mirrored, back, -s, -9400.0, np.array([-Z_VELO]))[0] * np.array([1.0, 1.0, -1.0, -1.0])[:, None]
    np.testing.assert_allclose(home[:2], states[:2], atol=0.02)
    np.testing.assert_allclose(home[2:], states[2:], atol=1e-5)


def test_a_particle_that_leaves_the_magnet_has_no_state_behind_it() -> None:
    states = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    found = fly(FIELD, states, np.array([5.0, 0.1]), Z_VELO, PLANES)
    assert np.isnan(found[-1, :, 0]).all()
    assert np.isfinite(found[:, :, 1]).all()


def test_origins_are_spread_evenly_and_the_same_each_time() -> None:
    states, s = Origins().draw(1000, Z_VELO)
    again, _ = Origins().draw(500, Z_VELO, skip=500)
    np.testing.assert_array_equal(states[:, 500:], again)
    for values, largest in ((states[2], 0.3), (states[3], 0.24)):
        assert np.abs(values).max() <= largest
        np.testing.assert_allclose(np.quantile(values, [0.25, 0.5, 0.75]) / largest, [-0.5, 0.0, 0.5], atol=0.01)
    assert np.abs(s).max() <= 1.0 / 1.5
    assert abs(np.mean(s > 0) - 0.5) < 0.01


def test_the_layers_of_the_scifi_are_where_the_geometry_says() -> None:
    z = SciFiGeometry.builtin().layer_z()
    np.testing.assert_allclose(z[[0, 5, 11]], [7826.1, 8577.9, 9402.9], atol=0.2)
