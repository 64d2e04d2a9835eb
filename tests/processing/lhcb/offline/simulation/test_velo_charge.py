"""Charge of nuclei in the VELO: which pixels get enough of it."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.ideal_velo import N_COLUMNS, N_ROWS, PIXEL_PITCH, column_edges
from hltnode.processing.lhcb.offline.simulation.response.velo_charge import (
    CHARGE_PER_MM,
    CLOUD_WIDTH,
    EV_PER_ELECTRON,
    THRESHOLD,
    ChargePoints,
    fired,
    range_of,
    released,
)
from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.event_random import EventRandom

MIDDLE = np.array([100.5, 80.5]) * PIXEL_PITCH


def pixels(place: Float64Array, electrons: float) -> set[tuple[int, int]]:
    """Columns and rows that one cloud fires."""
    _, column, row = fired(ChargePoints(np.zeros(1, np.int64), place[None], np.array([electrons])))
    return set(zip(column.tolist(), row.tolist(), strict=True))


def test_the_threshold_decides() -> None:
    assert pixels(MIDDLE, THRESHOLD + 1) == {(100, 80)}
    assert pixels(MIDDLE, THRESHOLD - 1) == set()


def test_a_cloud_is_shared_by_its_distance_to_the_edge() -> None:
    edge = MIDDLE + np.array([PIXEL_PITCH / 2 - CLOUD_WIDTH, 0.0])
    # 15.9 % of a normal distribution is more than one standard deviation away.
    assert pixels(edge, THRESHOLD / 0.16) == {(100, 80)}
    assert pixels(edge, THRESHOLD / 0.158) == {(100, 80), (101, 80)}
    corner = MIDDLE - PIXEL_PITCH / 2
    assert pixels(corner, 4.01 * THRESHOLD) == {(c, r) for c in (99, 100) for r in (79, 80)}
    assert pixels(corner, 3.99 * THRESHOLD) == set()


def test_charge_of_several_points_of_a_crossing_adds_up_and_that_of_others_does_not() -> None:
    place, electrons = np.tile(MIDDLE, (2, 1)), np.full(2, 0.6 * THRESHOLD)
    for crossing, n in ((np.array([3, 3]), 1), (np.array([3, 4]), 0)):
        found, _, _ = fired(ChargePoints(crossing, place, electrons))
        assert found.tolist() == [3] * n


def test_charge_beyond_the_edge_of_the_sensor_is_lost() -> None:
    size = np.array([column_edges()[-1], N_ROWS * PIXEL_PITCH])
    assert pixels(np.zeros(2), 4.01 * THRESHOLD) == {(0, 0)}
    assert pixels(np.zeros(2), 3.99 * THRESHOLD) == set()
    assert pixels(size - 0.001 * PIXEL_PITCH, 4.01 * THRESHOLD) == {(N_COLUMNS - 1, N_ROWS - 1)}
    assert pixels(np.array([-PIXEL_PITCH, 0.5 * PIXEL_PITCH]), 1e6) == set()


def test_a_wide_pixel_between_two_chips_collects_more() -> None:
    last = 255
    middle = column_edges()[last : last + 2].mean()
    beside = np.array([middle - 0.6 * PIXEL_PITCH, MIDDLE[1]])
    assert pixels(beside, 1.5 * THRESHOLD) == {(last, 80)}


def released_by(charge: int, n: int = 4000) -> ChargePoints:
    random = EventRandom([np.random.default_rng(4)])
    rng = np.random.default_rng(2)
    local = MIDDLE + rng.uniform(-0.5, 0.5, (n, 2)) * PIXEL_PITCH
    zeros, path = np.zeros(n, np.int64), np.zeros((n, 2))
    return released(random, zeros, np.full(n, charge), local, path, 0.2, np.array([-0.4, 0.0, 0.4]))


def test_charge_and_knocked_out_electrons_rise_with_the_square_of_the_charge() -> None:
    one, two = released_by(1), released_by(2)
    along = [points.electrons[: 3 * 4000].sum() / 4000 for points in (one, two)]
    assert along == pytest.approx([0.2 * CHARGE_PER_MM, 0.8 * CHARGE_PER_MM])
    knocked = [(len(points.electrons) - 3 * 4000) / 16 / 4000 for points in (one, two)]
    assert knocked == pytest.approx([0.119, 0.475], rel=0.1)


def test_knocked_out_electrons_have_their_energy_and_their_range() -> None:
    points = released_by(2)
    of_electron = points.electrons[3 * 4000 :].reshape(-1, 16)
    energy = of_electron.sum(axis=1) * EV_PER_ELECTRON / 1e6
    assert energy.min() >= 0.03
    assert energy.max() == pytest.approx(1.0)
    assert (energy > 0.06).mean() == pytest.approx(0.5, abs=0.05)
    first, last = points.place[3 * 4000 :].reshape(-1, 16, 2)[:, [0, -1]].transpose(1, 0, 2)
    length = np.hypot(*(last - first).T) * 16 / 15
    assert (length <= range_of(energy) * 1.001).all()
    slow = energy < 0.05
    assert (length[slow] > 0.95 * range_of(energy[slow])).all()


def test_the_range_is_that_of_the_formula() -> None:
    """0.1 MeV: 13.5 mg/cm²; 1 MeV: 412 mg/cm²; 2.33 g/cm³."""
    assert range_of(np.array([0.1, 1.0])) * 233 == pytest.approx([13.5, 412.0], rel=0.01)


def test_sizes_of_clusters_of_nuclei() -> None:
    crossing, _, _ = fired(released_by(2))
    sizes = np.bincount(crossing, minlength=4000)
    assert sizes.min() >= 1
    assert (sizes == 1).mean() == pytest.approx(0.41, abs=0.03)
    assert (sizes >= 4).mean() == pytest.approx(0.135, abs=0.02)


def test_no_nucleus_draws_no_random_number() -> None:
    rng = np.random.default_rng(7)
    empty = np.zeros((0, 2))
    points = released(
        EventRandom([rng]), np.zeros(0, np.int64), np.zeros(0, np.int64), empty, empty, 0.2, np.array([0.0])
    )
    assert all(len(of) == 0 for of in fired(points))
    assert rng.random() == np.random.default_rng(7).random()
