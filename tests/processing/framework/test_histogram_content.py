"""The median of a histogram."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.histograms import HistogramContent, HistogramShape

SHAPE = HistogramShape(name="beam_x", bins=800, low=-4.0, high=4.0)


def content(values: NDArray[np.float64]) -> HistogramContent:
    inside, _ = np.histogram(values, SHAPE.edges)
    counts = [(values < SHAPE.low).sum(), *inside, (values >= SHAPE.high).sum(), 5]
    return HistogramContent(SHAPE, np.array(counts, np.uint64))


@pytest.mark.parametrize("centre", [-3.2, -0.004, 0.0, 0.123, 3.4])
def test_the_median_is_that_of_the_values(centre: float) -> None:
    values = centre + 0.1 * np.random.default_rng(3).standard_t(1.5, 20_000)
    assert content(values).median == pytest.approx(float(np.median(values)), abs=0.002)


def test_the_median_lies_within_its_bin_by_the_share_of_the_values_below() -> None:
    shape = HistogramShape(name="x", bins=2, low=0.0, high=2.0)
    counts = np.array([1, 1, 4, 0, 0], np.uint64)
    assert HistogramContent(shape, counts).median == pytest.approx(1.25)


@pytest.mark.parametrize(("centre", "end"), [(-9.0, -4.0), (9.0, 4.0)])
def test_a_median_outside_the_range_is_the_end_of_the_range(centre: float, end: float) -> None:
    assert content(np.full(10, centre)).median == end


def test_a_histogram_without_values_has_no_median() -> None:
    assert math.isnan(content(np.zeros(0)).median)
