"""Counters of the hot path."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.daemon.common.vocabulary import CloseReason
from hltnode.daemon.monitoring.counters import END_TO_END_BOUNDS, MEP_BOUNDS, STAGE_BOUNDS, Counters, Histogram
from hltnode.processing.framework.flags import ChainFlag, EventFlag, FlagTable
from hltnode.protocol.errors import RejectReason


@given(st.lists(st.floats(0, 20)))
def test_a_histogram_counts_a_value_in_the_first_bucket_that_holds_it(values: list[float]) -> None:
    histogram = Histogram(MEP_BOUNDS)
    for value in values:
        histogram.observe(value)
    below = 0
    for bound, count in zip(MEP_BOUNDS, histogram.counts, strict=False):
        below += count
        assert below == sum(value <= bound for value in values)
    assert sum(histogram.counts) == len(values)
    assert histogram.total == pytest.approx(sum(values))


@pytest.mark.parametrize("bounds", [MEP_BOUNDS, STAGE_BOUNDS, END_TO_END_BOUNDS])
def test_bounds_ascend(bounds: tuple[float, ...]) -> None:
    assert list(bounds) == sorted(set(bounds))


def test_every_reject_and_close_reason_starts_at_zero() -> None:
    counters = Counters()
    assert counters.fragments_rejected == dict.fromkeys(RejectReason, 0)
    assert counters.meps_closed == dict.fromkeys(CloseReason, 0)


def test_expecting_sources_again_keeps_their_counts() -> None:
    counters = Counters()
    counters.expect_sources([1, 2])
    counters.sources[2].fragments = 7
    counters.expect_sources([2, 3])
    assert {source: of.fragments for source, of in counters.sources.items()} == {1: 0, 2: 7, 3: 0}


def test_a_batch_is_counted_by_event_line_and_flag() -> None:
    counters = Counters()
    counters.set_lines(["passthrough", "micro_bias"])
    counters.set_flags(FlagTable([ChainFlag(name="own", bit=20, text="")]))
    flags = np.array([0, EventFlag.BANK_ERROR, EventFlag.BANK_ERROR | EventFlag.INCOMPLETE, 1 << 20], np.uint32)
    counters.count_batch(np.array([1, 0, 1, 1], np.uint8), np.array([[1], [0], [2], [3]], np.uint32), flags)
    counters.count_batch(np.array([0], np.uint8), np.array([[0]], np.uint32), np.array([0], np.uint32))
    assert counters.batches == 2
    assert counters.events_processed == 5
    assert counters.events_accepted == 3
    assert counters.line_accepts == [2, 2]
    assert counters.events_flagged["bank_error"] == 2
    assert counters.events_flagged["incomplete"] == 1
    assert counters.events_flagged["overflow"] == 0
    assert counters.events_flagged["own"] == 1


def test_objects_are_summed_by_collection() -> None:
    counters = Counters()
    counters.set_collections(["hits", "tracks"])
    assert counters.objects == {"hits": 0, "tracks": 0}
    counters.count_objects({"hits": 40, "tracks": 3})
    counters.count_objects({})
    counters.count_objects({"hits": 2, "tracks": 0})
    assert counters.objects == {"hits": 42, "tracks": 3}


@pytest.mark.parametrize("n_lines", [1, 31, 32, 33, 63, 64, 65, 500])
@pytest.mark.parametrize("n_events", [0, 1, 255, 256, 1000])
def test_every_line_is_counted_for_any_number_of_lines(n_lines: int, n_events: int) -> None:
    rng = np.random.default_rng(n_lines)
    fired = rng.random((n_events, n_lines)) < rng.uniform(0, 1, n_lines)
    fired[:, -1] = True
    bits = np.zeros((n_events, 32 * -(-n_lines // 32)), dtype=bool)
    bits[:, :n_lines] = fired
    words = np.packbits(bits, axis=1, bitorder="little").view("<u4")
    counters = Counters()
    counters.set_lines([f"line_{i}" for i in range(n_lines)])
    for _ in range(2):
        counters.count_batch(np.ones(n_events, np.uint8), words, np.zeros(n_events, np.uint32))
    assert counters.line_accepts == (2 * fired.sum(axis=0)).tolist()
