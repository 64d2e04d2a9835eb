"""Records of windows with clock offsets of sources: hits and their times are those of right clocks."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.daemon.output.time_windows import TimeWindows
from hltnode.processing.framework.streaming import HitLayout, Streaming
from hltnode.protocol.raw_data.time_windows import WindowStatus
from tests.daemon.output.test_window_records import (
    BEFORE,
    BEHIND,
    EMPTY,
    LENGTH,
    N_EVENTS,
    NO_DATA,
    ORIGIN,
    STREAMING,
    WINDOWS,
    Fragments,
    Given,
    encode,
    fragment,
    rows_of,
)

OFFSETS = {5: 40, 77: -95, 300: 10}
"""ns by source; whole numbers of units of 2.5 ns."""
CORRECTED = TimeWindows(STREAMING, WINDOWS, (NO_DATA,), OFFSETS)


def test_records_have_the_hits_and_times_of_right_clocks() -> None:
    rng = np.random.default_rng(3)
    n_moved = 0
    for _ in range(20):
        sent: Fragments = {source: [b""] * N_EVENTS for source in (5, 77, 300, 900)}
        everything = []
        for source in sent:
            ticks = np.sort(rng.integers(40, 40 * N_EVENTS - 40, 60))
            for number, tick in enumerate(ticks.tolist()):
                wrong = tick - OFFSETS.get(source, 0) * 2 // 5
                event, rest = divmod(wrong, 40)
                before = sent[source][event]
                assert before is not None
                sent[source][event] = before + fragment((number, rest, 7))
                n_moved += event != tick // 40
                hit = fragment((number, tick % 40, 7))
                everything.append((tick // 40, source, ORIGIN + tick // 40 * LENGTH + tick % 40 * 5 // 2, hit))
        everything.sort()
        given: Given = [
            (int(event), int(start), int(start + size), 1)
            for event, start, size in zip(
                rng.integers(1, 10, 6), rng.integers(-95, 100, 6), rng.integers(1, 101, 6), strict=True
            )
        ]
        found, encoded = encode(sent, given, times=CORRECTED)
        assert encoded.hits_outside == 0
        assert encoded.kept_ns == sum(window.end_ns - window.start_ns for window in found)
        for window in found:
            inside = [
                (time, source, hit) for _, source, time, hit in everything if window.start_ns <= time < window.end_ns
            ]
            assert sorted(rows_of(window)) == sorted(inside)
            assert window.status == 0
    assert n_moved > 100


def test_a_corrected_time_that_its_field_cannot_hold_leaves_the_hit_out() -> None:
    """Times of 16 bits in units of 1 ns, in sub-slices of 70 us."""
    long = Streaming(
        sub_slice_ns=70_000,
        margin_before=BEFORE,
        margin_behind=BEHIND,
        hit=HitLayout(size=4, time_offset=1, time_type=">u2"),
    )
    hits = EMPTY.copy()
    hits[4] = fragment((1, 65_000, 0))
    for offset, n in ((535, 1), (536, 0)):
        [window], encoded = encode({5: hits}, [(4, 0, 70_000, 1)], times=TimeWindows(long, WINDOWS, (), {5: offset}))
        assert (len(window.hits), encoded.hits_outside) == (n, 1 - n)
        assert (window.status == WindowStatus.DAMAGED) == (n == 0)


def test_a_hit_outside_of_its_sub_slice_is_counted_once_with_an_offset() -> None:
    hits = EMPTY.copy()
    hits[4] = fragment((1, 40, 0), (2, 3, 0))
    [window], encoded = encode({5: hits}, [(3, 0, 300, 1)], times=CORRECTED)
    assert (len(window.hits), encoded.hits_outside, window.status) == (1, 1, WindowStatus.DAMAGED)


@pytest.mark.parametrize("offset", [100, -100, 1])
def test_offsets_of_a_sub_slice_or_of_a_part_of_a_unit_are_refused(offset: int) -> None:
    with pytest.raises(ValueError, match="clock offset"):
        TimeWindows(STREAMING, WINDOWS, (), {5: offset})
