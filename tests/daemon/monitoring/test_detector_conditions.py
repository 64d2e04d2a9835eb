"""The median of the last values of a run, compared with the number that the kernels use."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.daemon.monitoring.detector_conditions import MIN_VALUES, DetectorConditions
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
