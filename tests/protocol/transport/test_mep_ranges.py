"""Sets of MEP ids as disjoint ranges."""

import itertools

from hypothesis import example, given
from hypothesis import strategies as st

from hltnode.protocol.transport.mep_ranges import MepRanges, as_ranges


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_ids_can_be_removed_again(added: set[int], discarded: set[int]) -> None:
    ranges = MepRanges((mep, mep) for mep in added)
    for mep in discarded:
        ranges.discard(mep)
    assert {m for m in range(50) if m in ranges} == added - discarded


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5)), max_size=40))
def test_the_ranges_have_the_content_of_a_set_disjoint_and_merged(added: list[tuple[int, int]]) -> None:
    held = MepRanges()
    for first, more in added:
        held.add(first, first + more)
    meps = {mep for first, more in added for mep in range(first, first + more + 1)}
    assert {m for m in range(70) if m in held} == meps
    ranges = held.ranges()
    assert ranges == as_ranges(list(meps))
    assert {m for first, last in ranges for m in range(first, last + 1)} == meps
    assert all(b[0] > a[1] + 1 for a, b in itertools.pairwise(ranges))


@example({3, 4, 5, 6}, 6, 4)
@given(st.sets(st.integers(0, 40)), st.integers(0, 45), st.integers(0, 45))
def test_the_overlap_with_a_range_is_the_intersection_also_for_an_empty_range(
    held: set[int], first: int, last: int
) -> None:
    overlap = MepRanges((mep, mep) for mep in held).overlap(first, last)
    assert overlap == as_ranges(held & set(range(first, last + 1)))


def test_ranges_can_start_at_an_id() -> None:
    held = MepRanges()
    for mep in (0, 1, 2, 3, 7, 8):
        held.add(mep)
    assert held.ranges(2) == [(2, 3), (7, 8)]
    assert held.ranges(8) == [(8, 8)]
    assert held.ranges(9) == []
