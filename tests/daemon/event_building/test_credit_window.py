"""Credit window and acknowledgement ledger."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hltnode.daemon.common.mep_ranges import AckLedger, as_ranges
from hltnode.daemon.event_building.credit_window import CreditWindow


def test_the_limit_counts_meps_in_slots_and_those_that_may_come() -> None:
    window = CreditWindow()
    assert window.raise_to(4, at_least=1)
    assert (window.limit, window.outstanding) == (4, 4)
    window.opened()
    assert (window.limit, window.outstanding) == (4, 3)
    window.freed(1)
    assert (window.limit, window.outstanding) == (3, 3)


def test_credits_are_never_taken_back() -> None:
    window = CreditWindow()
    window.raise_to(4, at_least=1)
    assert not window.raise_to(1, at_least=1)
    assert window.outstanding == 4


def test_a_small_step_is_kept_for_later() -> None:
    window = CreditWindow()
    assert not window.raise_to(3, at_least=4)
    assert window.raise_to(4, at_least=4)


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_ids_can_be_taken_back_from_the_ledger(added: set[int], discarded: set[int]) -> None:
    ledger = AckLedger((mep, mep) for mep in added)
    for mep in discarded:
        ledger.discard(mep)
    assert {m for m in range(50) if m in ledger} == added - discarded


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5)), max_size=40))
def test_the_ledger_holds_what_a_set_holds_in_disjoint_merged_ranges(added: list[tuple[int, int]]) -> None:
    ledger = AckLedger()
    for first, more in added:
        ledger.add(first, first + more)
    meps = {mep for first, more in added for mep in range(first, first + more + 1)}
    assert {m for m in range(70) if m in ledger} == meps
    ranges = ledger.ranges()
    assert ranges == as_ranges(list(meps))
    assert {m for first, last in ranges for m in range(first, last + 1)} == meps
    assert all(b[0] > a[1] + 1 for a, b in itertools.pairwise(ranges))


def test_ranges_can_start_at_an_id() -> None:
    ledger = AckLedger()
    for mep in (0, 1, 2, 3, 7, 8):
        ledger.add(mep)
    assert ledger.ranges(2) == [(2, 3), (7, 8)]
    assert ledger.ranges(8) == [(8, 8)]
    assert ledger.ranges(9) == []
