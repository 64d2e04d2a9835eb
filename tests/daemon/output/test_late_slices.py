"""Counts of slices that were closed without a source, and the time of the detector that passed through a node."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.daemon.common.vocabulary import CloseReason, HeadRoomRule, StreamTime, WindowCount
from tests.daemon.output.test_window_records import (
    BEFORE,
    BEHIND,
    EMPTY,
    LENGTH,
    N_EVENTS,
    SLICE,
    batch_of,
    computed_slice,
    gatherer_of,
    slice_of,
)

CORE_NS = (N_EVENTS - BEFORE - BEHIND) * LENGTH


@pytest.mark.parametrize(
    ("reason", "missing", "dropped_by", "late", "dropped"),
    [
        (CloseReason.COMPLETE, (), None, 0, 0),
        (CloseReason.TIMEOUT, (9,), None, 1, 0),
        (CloseReason.OVERTAKEN, (9,), None, 0, 0),
        (CloseReason.COMPLETE, (), HeadRoomRule.THIN, 0, 1),
        (CloseReason.TIMEOUT, (9,), HeadRoomRule.DROP, 1, 1),
    ],
)
def test_slices_and_their_time_are_counted_by_what_became_of_them(
    reason: CloseReason, missing: tuple[int, ...], dropped_by: HeadRoomRule | None, late: int, dropped: int
) -> None:
    buffer, rows = slice_of({5: EMPTY}, {})
    accepted = np.full(N_EVENTS, dropped_by is None, np.uint8)
    mep, results = computed_slice(SLICE, rows, [(4, 0, 50, 1), (4, 30, 70, 1)], accepted=accepted)
    mep.close_reason, mep.missing, mep.dropped_by = reason, missing, dropped_by
    tally = gatherer_of(buffer).gather(batch_of(mep, results)).windows
    assert tally is not None
    assert (tally.counts[WindowCount.SLICES], tally.counts[WindowCount.LATE_SLICES]) == (1, late)
    assert dict(tally.times) == {
        StreamTime.TAKEN: CORE_NS,
        StreamTime.LATE: late * CORE_NS,
        StreamTime.DROPPED: dropped * CORE_NS,
        StreamTime.KEPT: 0 if dropped else 70,
    }
