"""Electrons in the detector: helices, sensors, scattering and loss of energy."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.mu3e.detector_constants import (
    ELECTRON_MASS,
    LAYER_RADII,
    LAYER_THICKNESS,
    MEV_PER_MM,
    PIXEL_MM,
    SPEED_OF_LIGHT,
)
from hltnode.processing.mu3e.geometry.sensor_table import CENTRE, pixel_positions, sensors
from hltnode.processing.mu3e.offline.simulation import flight
from hltnode.processing.mu3e.offline.simulation.decays import products_of, stopping_points
from hltnode.processing.mu3e.offline.simulation.flight import (
    ENERGY_LOSS,
    TARGET_THICKNESS,
    Crossings,
    fly,
    highland,
    scattered,
)
from hltnode.protocol.mu3e.hit_banks import HIT, DecayKind

N = 1_500


def flown(*, scatter: bool, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray, Crossings]:
    """Places, momenta, charges and crossings of particles of both charges."""
    rng = np.random.default_rng(seed)
    made = products_of(rng, np.full(N, DecayKind.SIGNAL))
    places = stopping_points(rng, N)[made.decay]
    return places, made.momentum, made.charge, fly(rng, places, made.momentum, made.charge, scatter=scatter)


def test_crossings_lie_on_the_pixels_that_they_name() -> None:
    for scatter in (False, True):
        *_, crossings = flown(scatter=scatter)
        hits = np.zeros(len(crossings.particle), HIT)
        hits["sensor"], hits["column"], hits["row"] = crossings.sensor, crossings.column, crossings.row
        assert np.abs(pixel_positions(hits) - crossings.place).max() <= PIXEL_MM / 2 + 1e-3
        np.testing.assert_array_equal(sensors()["layer"][crossings.sensor], crossings.layer)
        central = sensors()["station"][crossings.sensor] == CENTRE
        assert not (crossings.outward & ~central).any()


def test_without_material_crossings_lie_on_a_helix_at_their_times() -> None:
    places, momenta, charges, crossings = flown(scatter=False)
    of = crossings.particle
    place, momentum, charge = places[of], momenta[of], charges[of][:, None]
    transverse = np.hypot(momentum[:, 0], momentum[:, 1])
    radius = transverse / MEV_PER_MM
    centre = place[:, :2] + charge * np.column_stack([momentum[:, 1], -momentum[:, 0]]) / MEV_PER_MM
    from_centre = crossings.place[:, :2] - centre
    np.testing.assert_allclose(np.hypot(*from_centre.T), radius, atol=1e-6)
    size = np.sqrt((momentum**2).sum(1))
    speed = SPEED_OF_LIGHT * size / np.hypot(size, ELECTRON_MASS)
    turned = -charge[:, 0] * crossings.time * speed * transverse / size / radius
    start = place[:, :2] - centre
    expected = np.column_stack(
        [
            start[:, 0] * np.cos(turned) - start[:, 1] * np.sin(turned),
            start[:, 0] * np.sin(turned) + start[:, 1] * np.cos(turned),
        ]
    )
    np.testing.assert_allclose(from_centre, expected, atol=1e-6)
    np.testing.assert_allclose(
        crossings.place[:, 2], place[:, 2] + momentum[:, 2] / size * speed * crossings.time, atol=1e-6
    )
    assert crossings.time.min() > 0.0


def test_positive_particles_turn_clockwise_seen_against_the_field() -> None:
    place, momentum = np.zeros((2, 3)), np.array([[30.0, 0.0, 1.0]] * 2)
    crossings = fly(np.random.default_rng(1), place, momentum, np.array([1, -1]), scatter=False)
    for particle, sign in ((0, -1.0), (1, 1.0)):
        last = crossings.place[crossings.outward & (crossings.particle == particle)][-1]
        assert np.sign(last[1]) == sign


def test_no_layer_is_missed_on_the_way_out() -> None:
    """Particles that leave almost at right angles to the axis, with a radius that takes them beyond the last layer."""
    rng = np.random.default_rng(2)
    turn = rng.uniform(0, 2 * np.pi, N)
    momentum = 40.0 * np.column_stack([np.cos(turn), np.sin(turn), rng.uniform(-0.2, 0.2, N)])
    crossings = fly(rng, np.zeros((N, 3)), momentum, np.full(N, 1), scatter=False)
    seen = np.zeros((N, 4), bool)
    seen[crossings.particle[crossings.outward], crossings.layer[crossings.outward]] = True
    assert seen.all()
    # Sensors that overlap give a second hit.
    number = crossings.outward.sum() / N / 4
    assert 1.0 < number < 1.15


def test_curling_particles_return_to_the_outer_layers_and_to_the_stations() -> None:
    *_, crossings = flown(scatter=True)
    station = sensors()["station"][crossings.sensor]
    assert {0, 1, 2} == set(station.tolist())
    behind = ~crossings.outward
    assert behind.mean() > 0.3
    assert (crossings.layer[behind] >= 2).mean() > 0.4
    first = np.full(3 * N, np.inf)
    np.minimum.at(first, crossings.particle, crossings.time)
    back = behind & (station == CENTRE)
    # A few graze the corner between two sensors, and miss one of them on the way out.
    assert (crossings.time[back] > first[crossings.particle[back]]).mean() > 0.999


def test_scattering_has_the_width_of_highland_in_both_planes() -> None:
    momentum = np.tile([0.0, 0.0, 30.0], (N, 1))
    turned = scattered(np.random.default_rng(3), momentum, np.full(N, LAYER_THICKNESS))
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 30.0)
    # 13.6 MeV / 30 MeV * sqrt(0.00115) * (1 + 0.038 ln 0.00115)
    expected = 0.01142
    np.testing.assert_allclose(highland(np.array([30.0]), np.array([LAYER_THICKNESS])), expected, rtol=1e-3)
    for axis in range(2):
        np.testing.assert_allclose(np.std(turned[:, axis] / turned[:, 2]), expected, rtol=5 / (2 * N) ** 0.5)


def test_a_layer_scatters_what_passes_it() -> None:
    """Kinks at the first layer: directions to the second one differ by the width of the target and of the layer."""
    rng = np.random.default_rng(4)
    momentum = np.tile([30.0, 0.0, 0.0], (N, 1))
    start = np.zeros((N, 3))
    heights = []
    for scatter in (False, True):
        crossings = fly(rng, start, momentum, np.full(N, 1), scatter=scatter)
        second = crossings.outward & (crossings.layer == 1)
        heights.append(crossings.place[second, 2])
    assert np.abs(heights[0]).max() < 1e-9
    angle = highland(np.array([30.0, 30.0]), np.array([TARGET_THICKNESS, LAYER_THICKNESS]))
    lever = np.array([LAYER_RADII[1], LAYER_RADII[1] - LAYER_RADII[0]])
    expected = np.sqrt(((angle * lever) ** 2).sum())
    np.testing.assert_allclose(np.std(heights[1]), expected, rtol=0.08)


@pytest.mark.parametrize(("facing", "path"), [(1.0, 1.0), (0.5, 2.0), (0.05, 10.0)])
def test_inclined_particles_pass_more_of_a_layer_up_to_its_edge(facing: float, path: float) -> None:
    n = 4 * N
    momentum = np.tile(30.0 * np.array([facing, 0.0, (1.0 - facing**2) ** 0.5]), (2 * n, 1))
    none, hit = np.zeros(2 * n), np.repeat([True, False], n)
    state = flight._State(
        none.astype(int), np.zeros((2 * n, 3)), momentum.copy(), none + 1.0, none, none.astype(int), none > 0
    )
    flight._pass_layer(np.random.default_rng(6), state, hit, none)
    np.testing.assert_array_equal(state.momentum[n:], momentum[n:])
    size = np.linalg.norm(state.momentum[:n], axis=1)
    expected = highland(np.array([30.0]), np.array([LAYER_THICKNESS * path]))
    np.testing.assert_allclose(np.std(state.momentum[:n, 1] / size), expected, rtol=5 / (2 * n) ** 0.5)
    # Losses have a standard deviation of half their mean.
    np.testing.assert_allclose(30.0 - size.mean(), ENERGY_LOSS * path, rtol=2.5 / n**0.5 + 1e-3)


def test_no_crossing_of_a_particle_that_grazes_a_layer_counts_twice() -> None:
    """The cylinder of the layer is crossed twice, within a few cm of the planes; only the nearer crossing counts."""
    start, momentum = np.array([[-12.0, 0.0, 0.0]]), np.array([[9.5, 7.4, 2.0]])
    made = fly(np.random.default_rng(1), start, momentum, np.array([1]), scatter=False)
    first_turn = (made.layer == 2) & (made.time < 0.6)
    order = np.argsort(made.time[first_turn])
    assert sensors()["ladder"][made.sensor[first_turn]][order].tolist() == [20, 19, 19]
    assert np.diff(made.time[first_turn][order]).min() > 0.02


def test_a_sensor_behind_the_start_is_not_crossed() -> None:
    """The start lies between the cylinder of the first layer and the plane of its first sensor."""
    start = np.array([[LAYER_RADII[0] - 0.1, 8.0, 5.0]])
    made = fly(np.random.default_rng(1), start, np.array([[-30.0, 0.0, 0.0]]), np.array([1]), scatter=False)
    assert made.time.min() > 0.1
    assert made.place[0, 0] < 0.0


def radius_of(points: np.ndarray) -> np.ndarray:
    """Radii of circles through f64[n, 3, 2]."""
    sides = np.linalg.norm(points - np.roll(points, 1, axis=1), axis=2)
    first, second = points[:, 1] - points[:, 0], points[:, 2] - points[:, 0]
    area = np.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])
    radii: np.ndarray = sides.prod(1) / (2.0 * area)
    return radii


def test_particles_lose_energy_in_layers_before_they_return() -> None:
    """The circle through layers 3, 2 and 1 on the way back, behind four layers out and one back."""
    momentum = np.tile([20.0, 0.0, 1.0], (N, 1))
    lost = {}
    for scatter in (False, True):
        made = fly(np.random.default_rng(5), np.zeros((N, 3)), momentum, np.full(N, 1), scatter=scatter)
        back = ~made.outward & (made.time < 1.4)
        points = np.full((N, 4, 2), np.nan)
        points[made.particle[back], made.layer[back]] = made.place[back, :2]
        lost[scatter] = 20.0 - np.nanmedian(radius_of(points[:, 1:])) * MEV_PER_MM
    assert abs(lost[False]) < 1e-6
    assert 0.15 < lost[True] < 0.4


def test_nothing_flies_out_of_nothing() -> None:
    none = fly(np.random.default_rng(1), np.zeros((0, 3)), np.zeros((0, 3)), np.empty(0, np.int64))
    assert len(none.particle) == len(none.place) == 0
    at_rest = fly(np.random.default_rng(1), np.zeros((1, 3)), np.zeros((1, 3)), np.array([1]))
    assert len(at_rest.particle) == 0
    soft = fly(np.random.default_rng(1), np.zeros((1, 3)), np.array([[0.5, 0.0, 0.1]]), np.array([1]))
    assert len(soft.particle) == 0
