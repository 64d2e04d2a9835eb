"""The estimates beside published times: which kernels they have, and whether the copy counts."""

from __future__ import annotations

import pytest

from benchmarks.device_code.estimate import H100, SLOW, Estimate, KernelEstimate, estimate
from benchmarks.device_code.streams import STREAMS, Published, figures, pixel_hits, seconds_of, telescope_hits
from tests.benchmarks.device_code.test_estimate import a_kernel, a_report

KERNELS = {name: KernelEstimate(seconds, 0.0, 0.0) for name, seconds in (("sort", 3e-9), ("find", 4e-9))}


def test_a_published_time_is_compared_with_the_kernels_that_it_has() -> None:
    found = Estimate(KERNELS, 10e-9)
    assert seconds_of(found, Published("all", 1.0, (), copies=False), 2.0) == pytest.approx(3.5e-9)
    assert seconds_of(found, Published("some", 1.0, ("sort",), copies=False), 2.0) == pytest.approx(1.5e-9)


def test_a_copy_counts_where_the_published_time_has_it_and_it_is_longer() -> None:
    published = Published("with copies", 1.0, (), copies=True)
    assert seconds_of(Estimate(KERNELS, 10e-9), published, 2.0) == pytest.approx(5e-9)
    assert seconds_of(Estimate(KERNELS, 6e-9), published, 2.0) == pytest.approx(3.5e-9)


def test_ratios_are_those_of_rates() -> None:
    report = a_report(a_kernel(), input_bytes=1.0)
    found = figures(STREAMS["km3net"], report, 100.0)["C2050, GPU alone"]
    of_slow = estimate(report, SLOW, H100).kernel_seconds
    assert found["published_per_s"] == pytest.approx(4.6e6 / 0.150)
    assert found["slow_per_s"] == pytest.approx(100.0 / of_slow)
    assert found["slow_ratio"] == pytest.approx(found["slow_per_s"] / found["published_per_s"])
    assert found["fast_ratio"] > found["slow_ratio"]


@pytest.mark.parametrize("name", STREAMS)
def test_published_kernels_are_in_the_sequence(name: str) -> None:
    stream = STREAMS[name]
    known = {algorithm.name for algorithm in stream.chain.sequences[stream.sequence].algorithms}
    assert {kernel for published in stream.published for kernel in published.kernels} <= known


def test_samples_have_the_published_rates() -> None:
    hits = telescope_hits(40)
    assert hits.mep.n_events == 40
    # 4.6 million a second, 25 us in each sub-slice.
    assert hits.work / 40 == pytest.approx(4.6e6 * 25e-6, rel=0.05)
    pixels = pixel_hits(8)
    assert pixels.mep.n_events == 8
    assert 5_000 < pixels.work / 8 < 15_000
