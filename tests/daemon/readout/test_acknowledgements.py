"""Which MEPs are done: in this run, in a run that is taken up again, and after some went to another node."""

from hltnode.daemon.readout.acknowledgements import Acknowledgements


def test_a_run_that_is_taken_up_again_knows_what_was_done_before() -> None:
    acknowledged = Acknowledgements()
    acknowledged.begin(7)
    acknowledged.finish([0, 1, 2, 5])
    acknowledged.leave(7)
    acknowledged.forget()
    assert acknowledged.ranges() == ()
    acknowledged.begin(8)
    assert 1 not in acknowledged
    acknowledged.begin(7)
    assert acknowledged.ranges() == ((0, 2), (5, 5))


def test_what_earlier_sessions_have_done_stays_known_until_the_run_begins() -> None:
    acknowledged = Acknowledgements()
    acknowledged.remember({7: ((3, 9),)})
    assert acknowledged.earlier(7) == acknowledged.earlier(7) == ((3, 9),)
    acknowledged.begin(7)
    assert acknowledged.ranges(5) == ((5, 9),)
    assert acknowledged.earlier(7) == ()


def test_a_mep_that_was_revoked_on_its_way_is_not_acknowledged_when_it_ends_and_is_when_it_comes_again() -> None:
    acknowledged = Acknowledgements()
    acknowledged.begin(7)
    acknowledged.finish([1])
    acknowledged.revoke([(1, 3)], on_their_way={2})
    assert 1 not in acknowledged
    acknowledged.finish([2, 3])
    assert acknowledged.ranges() == ((3, 3),)
    acknowledged.finish([2])
    assert acknowledged.ranges() == ((2, 3),)


def test_what_is_settled_is_done_below_the_floor_and_not_at_it() -> None:
    acknowledged = Acknowledgements()
    acknowledged.begin(7)
    acknowledged.acknowledged_below(0)
    assert acknowledged.ranges() == ()
    acknowledged.acknowledged_below(4)
    assert acknowledged.ranges() == ((0, 3),)
