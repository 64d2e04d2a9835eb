"""Credit window and acknowledgement ledger."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hltnode.daemon.credits import AckLedger, CreditWindow, as_ranges


def test_the_limit_counts_places_from_the_highest_opened_id() -> None:
    window = CreditWindow(first_mep=10)
    assert window.raise_limit(4, at_least=1)
    assert window.limit == 14
    assert window.outstanding == 4
    window.opened(10, 0)
    assert window.outstanding == 3
    assert not window.raise_limit(3, at_least=1)


def test_ids_that_are_jumped_over_keep_a_credit() -> None:
    window = CreditWindow(0)
    window.raise_limit(4, at_least=1)
    window.opened(2, now_ns=5)
    assert window.gaps == {0: 5, 1: 5}
    assert window.outstanding == 3
    window.opened(0, now_ns=6)
    assert window.outstanding == 2
    window.forget_gaps(before_ns=6)
    assert window.outstanding == 1


def test_the_limit_never_goes_down() -> None:
    window = CreditWindow(0)
    window.raise_limit(4, at_least=1)
    assert not window.raise_limit(1, at_least=1)
    assert window.limit == 4


def test_a_small_step_is_kept_for_later() -> None:
    window = CreditWindow(0)
    assert not window.raise_limit(3, at_least=4)
    assert window.raise_limit(4, at_least=4)


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
