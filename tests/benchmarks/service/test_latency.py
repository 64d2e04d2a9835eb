"""Quantiles of the histograms of a node."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.service.latency import Counted


def counted(*below: float, total: float = 0.0) -> Counted:
    return Counted(np.array([1.0, 2.0, 5.0, np.inf]), np.array(below), total)


@pytest.mark.parametrize(("fraction", "expected"), [(0.25, 0.5), (0.5, 1.0), (0.75, 1.5), (1.0, 2.0)])
def test_a_quantile_is_interpolated_in_its_bucket(fraction: float, expected: float) -> None:
    assert counted(50.0, 100.0, 100.0, 100.0).quantile(fraction) == pytest.approx(expected)


def test_what_is_above_the_last_bound_counts_as_that() -> None:
    assert counted(0.0, 0.0, 0.0, 10.0).quantile(0.5) == 5.0


def test_empty_buckets_are_passed_over() -> None:
    assert counted(0.0, 0.0, 10.0, 10.0).quantile(0.5) == pytest.approx(3.5)


def test_only_what_was_counted_since_then_counts() -> None:
    later, before = counted(10.0, 30.0, 30.0, 30.0, total=40.0), counted(10.0, 10.0, 10.0, 10.0, total=5.0)
    since = later.since(before)
    assert since.n == 20.0
    assert since.mean == pytest.approx(1.75)
    assert since.quantile(0.5) == pytest.approx(1.5)
