"""Quantiles of the histograms of a node."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.service import latency
from benchmarks.service.latency import WHOLE, Counted
from hltnode.daemon.common.vocabulary import MepStage


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


def test_rare_and_greatest_latencies_are_reported() -> None:
    bounds = np.array([0.001, 0.002, 0.004, np.inf])
    of = Counted(bounds, np.array([10.0, 998.0, 1000.0, 1000.0]), 2.0)
    found = {result.name: result.value for result in latency._results("x", "", dict.fromkeys((WHOLE, *MepStage), of))}
    assert found["x: p99"] < 2.0 < found["x: p99.9"] == pytest.approx(3.0)
    assert found["x: greatest, at most"] == pytest.approx(4.0)
