"""Rows of the schedules of the smoother."""

from __future__ import annotations

import pytest

from benchmarks.lhcb.smoothing import group_rows, sorted_group_rows, static_rows


@pytest.mark.parametrize(
    ("hits", "static", "ordered", "groups"),
    [
        ([], 0, 0, 0),
        ([7], 7, 7, 7),
        ([3, 9, 3, 9], 12, 12, 18),
        ([9, 5, 5, 3], 12, 14, 14),
        ([4, 4, 4], 8, 8, 8),
    ],
)
def test_a_lane_of_two_takes_the_next_track_when_its_own_ends(
    hits: list[int], static: int, ordered: int, groups: int
) -> None:
    assert (static_rows(hits, 2), sorted_group_rows(hits, 2), group_rows(hits, 2)) == (static, ordered, groups)
