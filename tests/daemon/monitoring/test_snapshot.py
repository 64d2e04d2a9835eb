"""Copies of counters do not change with the counters."""

from __future__ import annotations

from hltnode.daemon.common.vocabulary import CloseReason
from hltnode.daemon.monitoring.counters import MEP_BOUNDS, Counters, Histogram
from hltnode.daemon.monitoring.snapshot import snapshot


def test_the_copy_of_a_histogram_keeps_its_counts() -> None:
    histogram = Histogram(MEP_BOUNDS)
    histogram.observe(0.5)
    copied = snapshot(histogram)
    before = copied.counts.copy()
    histogram.observe(0.5)
    assert (copied.bounds, copied.counts, copied.total) == (MEP_BOUNDS, before, 0.5)
    assert sum(histogram.counts) == 2


def test_the_copy_of_all_counters_keeps_numbers_lists_and_tables() -> None:
    counters = Counters()
    counters.set_lines(["line"])
    counters.expect_sources([1])
    copied = snapshot(counters)
    counters.batches += 1
    counters.line_accepts[0] += 1
    counters.meps_closed[CloseReason.COMPLETE] += 1
    counters.sources[1].fragments += 1
    assert (copied.batches, copied.line_accepts, copied.meps_closed[CloseReason.COMPLETE]) == (0, [0], 0)
    assert copied.sources[1].fragments == 0
