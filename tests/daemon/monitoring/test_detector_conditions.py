"""The median of the last values of a run, compared with the number that the kernels use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.daemon.monitoring.detector_conditions import MAX_SIGN_VALUES, MIN_VALUES, DetectorConditions
from hltnode.processing.framework.histograms import HistogramShape, n_counts
from hltnode.processing.framework.measured_quantities import MeasuredQuantity

FIRST = HistogramShape(name="other", bins=3, low=0.0, high=3.0)
BEAM = HistogramShape(name="beam_x", bins=800, low=-4.0, high=4.0)
SHAPES = (FIRST, BEAM)
QUANTITY = MeasuredQuantity(
    name="x_of_beam", histogram="beam_x", configured=0.5, tolerance=0.05, low=-3.5, high=3.5, unit="mm"
)


def counts(values: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Counts of both histograms, the values in the second."""
    found = np.zeros(n_counts(SHAPES), np.uint32)
    found[: FIRST.n_counts] = 7
    inside, _ = np.histogram(values, BEAM.edges)
    own = found[FIRST.n_counts :]
    own[0], own[1:-2], own[-2] = (values < BEAM.low).sum(), inside, (values >= BEAM.high).sum()
    return found


def spread(centre: float, n: int, *, seed: int = 1) -> NDArray[np.float64]:
    """Values with long tails on both sides."""
    return centre + 0.1 * np.random.default_rng(seed).standard_t(1.5, n)


def test_a_number_is_measured_once_there_are_enough_values_and_again_after_as_many() -> None:
    conditions = DetectorConditions([QUANTITY], SHAPES)
    conditions.add(1, counts(spread(0.51, MIN_VALUES - 1)))
    [reading] = conditions.readings()
    assert (reading.measured, reading.values, reading.is_off) == (None, MIN_VALUES - 1, False)
    conditions.add(1, counts(spread(0.51, 1)))
    [reading] = conditions.readings()
    assert reading.measured == pytest.approx(0.51, abs=0.01)
    assert not reading.is_off
    conditions.add(1, counts(spread(0.6, MIN_VALUES)))
    [reading] = conditions.readings()
    # Earlier values have no part in it.
    assert reading.measured == pytest.approx(0.6, abs=0.01)
    assert reading.is_off
    assert (reading.name, reading.configured, reading.tolerance, reading.unit) == ("x_of_beam", 0.5, 0.05, "mm")
    assert reading.values == 2 * MIN_VALUES


def test_values_of_two_runs_make_no_measurement_together() -> None:
    conditions = DetectorConditions([QUANTITY], SHAPES)
    conditions.add(1, counts(spread(0.0, MIN_VALUES - 1)))
    conditions.add(2, counts(spread(0.7, MIN_VALUES - 1)))
    assert conditions.readings()[0].measured is None
    conditions.add(2, counts(spread(0.7, 1)))
    assert conditions.readings()[0].measured == pytest.approx(0.7, abs=0.01)
    assert conditions.measured_in(1) == {}
    assert conditions.measured_in(2) == {"x_of_beam": conditions.readings()[0].measured}


def test_values_that_are_not_a_number_do_not_count() -> None:
    conditions = DetectorConditions([QUANTITY], SHAPES)
    of_nan = counts(spread(0.0, 10))
    of_nan[-1] = MIN_VALUES
    conditions.add(1, of_nan)
    [reading] = conditions.readings()
    assert (reading.measured, reading.values) == (None, 10)


def test_a_chain_without_measured_numbers_has_no_readings() -> None:
    conditions = DetectorConditions([], SHAPES)
    conditions.add(1, counts(spread(0.0, MIN_VALUES)))
    assert conditions.readings() == ()
    assert conditions.measured_in(1) == {}


POSITIVE = HistogramShape(name="positive", bins=4, low=-2.0, high=2.0)
NEGATIVE = HistogramShape(name="negative", bins=4, low=-2.0, high=2.0)
PAIR = (FIRST, NEGATIVE, POSITIVE)
POLARITY = MeasuredQuantity(
    name="polarity",
    histogram="positive",
    opposite="negative",
    configured=-1.0,
    tolerance=1.0,
    low=-1.0,
    high=1.0,
    unit="",
    follows=False,
)


def charges(positive: int, negative: int) -> NDArray[np.uint32]:
    """Counts with these numbers in each bin, and as many outside the range, which do not count."""
    found = np.zeros(n_counts(PAIR), np.uint32)
    begin = FIRST.n_counts
    for number in (negative, positive):
        found[begin : begin + NEGATIVE.n_counts] = [positive + negative, *([number] * 4), 1, 1]
        begin += NEGATIVE.n_counts
    return found


def test_a_sign_is_that_in_use_if_there_are_more_positive_values_and_else_the_opposite() -> None:
    conditions = DetectorConditions([POLARITY], PAIR)
    conditions.add(1, charges(5000, 5000))
    [reading] = conditions.readings()
    assert (reading.measured, reading.values, reading.is_off) == (None, 40_000, False)
    conditions.add(1, charges(5000, 3000))
    [reading] = conditions.readings()
    assert (reading.measured, reading.values, reading.is_off) == (-1.0, 72_000, False)
    # The values before a measurement have no part in the next one.
    conditions.add(1, charges(4000, 5000))
    [reading] = conditions.readings()
    assert (reading.measured, reading.is_off) == (1.0, True)


def test_values_without_a_sign_are_dropped_and_end_a_measurement() -> None:
    conditions = DetectorConditions([POLARITY], PAIR)
    conditions.add(1, charges(6000, 5000))
    assert conditions.readings()[0].measured == -1.0
    for _ in range(3):
        conditions.add(1, charges(MAX_SIGN_VALUES // 32, MAX_SIGN_VALUES // 32))
        assert conditions.readings()[0].measured == -1.0
    conditions.add(1, charges(MAX_SIGN_VALUES // 32, MAX_SIGN_VALUES // 32))
    assert conditions.readings()[0].measured is None
    # 20 million values more would hide this difference.
    conditions.add(1, charges(5200, 5000 - 1000))
    assert conditions.readings()[0].measured == -1.0


def test_a_sign_is_measured_anew_in_each_run_and_with_the_sign_in_use() -> None:
    conditions = DetectorConditions([POLARITY], PAIR)
    conditions.add(1, charges(6000, 5000))
    conditions.use([replace(POLARITY, configured=1.0)], given=True)
    [reading] = conditions.readings()
    assert (reading.configured, reading.measured, reading.followed) == (1.0, -1.0, False)
    conditions.add(2, charges(5000, 5000))
    assert conditions.readings()[0].measured is None
    conditions.add(2, charges(6000, 5000))
    assert conditions.readings()[0].measured == 1.0
