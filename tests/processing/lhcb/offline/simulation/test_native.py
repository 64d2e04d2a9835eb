"""The compiled loops of the simulation, compared with slow loops, and their errors for wrong columns."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.processing.lhcb.offline.simulation import _native

THRESHOLD, SEED, TOTAL, LONGEST = 1.0, 2.0, 3.0, 4
cluster = partial(_native.cluster, threshold=THRESHOLD, seed=SEED, total=TOTAL, longest=LONGEST)


def clusters_one_by_one(channels: list[int], charges: list[float]) -> list[tuple[int, list[float], set[int]]]:
    """First channel, charges by channel and deposits of each cluster, by following neighbours in a dictionary."""
    sums: dict[int, float] = {}
    for channel, charge in zip(channels, charges, strict=True):
        sums[channel] = sums.get(channel, 0.0) + charge
    lit = {channel: charge for channel, charge in sums.items() if charge >= THRESHOLD}
    found = []
    for first in sorted(channel for channel in lit if channel - 1 not in lit):
        last = first
        while last in lit:
            last += 1
        for begin in range(first, last, LONGEST):
            piece = range(begin, min(begin + LONGEST, last))
            own = [lit[channel] for channel in piece]
            if max(own) >= SEED and sum(own) >= TOTAL:
                found.append((begin, own, {i for i, channel in enumerate(channels) if channel in piece}))
    return found


# Charges in steps of a quarter add up without rounding, in any order.
deposits = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 16).map(lambda quarters: quarters / 4)), max_size=60)


@given(deposits)
def test_clusters_are_those_that_following_neighbours_finds(drawn: list[tuple[int, float]]) -> None:
    channels, charges = [channel for channel, _ in drawn], [charge for _, charge in drawn]
    order = np.argsort(np.array(channels, dtype=np.int64), kind="stable")
    first, size, charge, position, channel_charge, of_deposit = cluster(
        order, np.array(channels, dtype=np.int64)[order], np.array(charges, dtype=np.float64)
    )
    wanted = clusters_one_by_one(channels, charges)
    assert first.tolist() == [begin for begin, _, _ in wanted]
    assert size.tolist() == [len(own) for _, own, _ in wanted]
    assert charge.tolist() == [sum(own) for _, own, _ in wanted]
    assert channel_charge.tolist() == [value for _, own, _ in wanted for value in own]
    centres = [np.average(np.arange(len(own)), weights=own) for _, own, _ in wanted]
    np.testing.assert_allclose(position, centres, atol=1e-12)
    for number, (_, _, members) in enumerate(wanted):
        assert set(np.flatnonzero(of_deposit == number).tolist()) == members
    assert np.count_nonzero(of_deposit >= 0) == sum(len(members) for _, _, members in wanted)


def test_clusters_refuse_an_order_with_an_index_out_of_range() -> None:
    one = np.zeros(1)
    with pytest.raises(ValueError, match="not there"):
        cluster(np.array([1]), np.array([5]), one)
    with pytest.raises(ValueError, match="differ in length"):
        cluster(np.array([0, 0]), np.array([5]), one)


def test_crossings_are_those_of_every_line_with_every_sensor_in_the_order_of_flight() -> None:
    rng = np.random.default_rng(5)
    n_lines, n_sensors = 200, 12
    z = np.sort(rng.uniform(-300.0, 300.0, n_sensors))
    to_x, to_y = rng.normal(size=(2, n_sensors, 5))
    begin, end = rng.uniform(-350.0, 350.0, (2, n_lines))
    lines = np.column_stack([rng.normal(size=(n_lines, 4)), begin, end])
    line, sensor, place = _native.crossings(lines, z, to_x, to_y, 2.0, 1.0)
    wanted = []
    for i, own in enumerate(lines):
        numbers = [s for s in range(n_sensors) if min(own[4:]) < z[s] < max(own[4:])]
        for s in numbers if own[4] < own[5] else numbers[::-1]:
            x, y = (table[s] @ [*own[:4], 1.0] for table in (to_x, to_y))
            if abs(x) < 2.0 and abs(y) < 1.0:
                wanted.append((i, s, x + 2.0, y + 1.0))
    assert len(wanted) > 100
    assert list(zip(line.tolist(), sensor.tolist(), strict=True)) == [row[:2] for row in wanted]
    np.testing.assert_allclose(place, [row[2:] for row in wanted], atol=1e-9)


def test_no_lines_have_no_crossings() -> None:
    line, sensor, place = _native.crossings(np.empty((0, 6)), np.zeros(3), np.zeros((3, 5)), np.zeros((3, 5)), 1.0, 1.0)
    assert (line.shape, sensor.shape, place.shape) == ((0,), (0,), (0, 2))
    with pytest.raises(ValueError, match="do not fit"):
        _native.crossings(np.empty((0, 6)), np.zeros(3), np.zeros((2, 5)), np.zeros((3, 5)), 1.0, 1.0)


def test_flights_of_different_lengths_are_refused() -> None:
    one, two = np.zeros(1), np.zeros(2)
    with pytest.raises(ValueError, match="differ in length"):
        _native.advance(
            *(one, two, one, one, one, one, one, one, np.ones(1, dtype=bool), np.zeros(1, dtype=np.int64)),
            np.zeros((2, 2, 3), dtype=np.float32),
            *(100.0, 0.0, 1.0, 0.3, 5.0),
        )


def test_a_flight_outside_the_field_is_lost_and_one_that_ends_earlier_misses_the_node() -> None:
    x, end = np.array([0.0, 0.0, 90.0]), np.array([np.inf, 5.0, np.inf])
    zero = np.zeros(3)
    y, z, ty = zero.copy(), zero.copy(), zero.copy()
    tx = np.array([0.1, 0.0, 2.0])
    moving, there = np.ones(3, dtype=bool), np.zeros(3, dtype=np.int64)
    n = _native.advance(
        *(x, y, z, tx, ty, np.full(3, 1000.0), np.ones(3), end, moving, there),
        np.zeros((2, 2, 3), dtype=np.float32),
        *(100.0, 0.0, 10.0, 0.3, 5.0),
    )
    assert there[:n].tolist() == [0]
    assert moving.tolist() == [True, True, False]
    assert (x[0], z.tolist()) == (1.0, [10.0, 5.0, 10.0])


def test_a_flight_at_an_undefined_position_is_lost() -> None:
    x, moving, there = np.array([0.0, np.nan]), np.ones(2, dtype=bool), np.zeros(2, dtype=np.int64)
    y, z, tx, ty = np.zeros((4, 2))
    y[1] = np.nan
    n = _native.advance(
        *(x, y, z, tx, ty, np.full(2, 1000.0), np.ones(2), np.full(2, np.inf), moving, there),
        np.ones((3, 2, 3), dtype=np.float32),
        *(100.0, 0.0, 10.0, 0.3, 5.0),
    )
    assert there[:n].tolist() == [0]
    assert moving.tolist() == [True, False]


def test_flights_in_columns_that_would_be_copied_are_refused() -> None:
    every_second = np.zeros(4)[::2]
    two = np.ones(2)
    with pytest.raises(TypeError):
        _native.advance(
            *(every_second, two, two, two, two, two, two, two, np.ones(2, dtype=bool), np.zeros(2, dtype=np.int64)),
            np.zeros((2, 2, 3), dtype=np.float32),
            *(100.0, 0.0, 10.0, 0.3, 5.0),
        )
