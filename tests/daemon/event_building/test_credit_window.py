"""How many MEPs a feeder may have unacknowledged."""

from hltnode.daemon.event_building.credit_window import CreditWindow


def test_the_limit_counts_meps_in_slots_and_those_that_may_come() -> None:
    window = CreditWindow()
    assert window.raise_to(4, at_least=1)
    assert (window.limit, window.outstanding) == (4, 4)
    window.opened()
    assert (window.limit, window.outstanding) == (4, 3)
    window.freed(1)
    assert (window.limit, window.outstanding) == (3, 3)


def test_credits_are_never_revoked() -> None:
    window = CreditWindow()
    window.raise_to(4, at_least=1)
    assert not window.raise_to(1, at_least=1)
    assert window.outstanding == 4


def test_a_small_step_is_kept_for_later() -> None:
    window = CreditWindow()
    assert not window.raise_to(3, at_least=4)
    assert window.raise_to(4, at_least=4)
