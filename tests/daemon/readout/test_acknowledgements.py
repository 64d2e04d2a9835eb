"""Acknowledged MEPs by run, also after revocations."""

from hltnode.daemon.readout.acknowledgements import Acknowledgements


def test_runs_are_separate_until_they_are_forgotten() -> None:
    acknowledged = Acknowledgements()
    assert acknowledged.finish(7, [0, 1, 2, 5]) == [0, 1, 2, 5]
    acknowledged.finish(8, [9])
    assert acknowledged.ranges(7) == ((0, 2), (5, 5))
    assert acknowledged.ranges(8) == ((9, 9),)
    assert acknowledged.runs() == [7, 8]
    acknowledged.forget(7)
    assert acknowledged.ranges(7) == ()
    assert acknowledged.runs() == [8]


def test_meps_of_earlier_sessions_are_known() -> None:
    acknowledged = Acknowledgements()
    acknowledged.remember({7: ((3, 9),), 8: ()})
    assert acknowledged.ranges(7, 5) == ((5, 9),)
    assert acknowledged.runs() == [7]


def test_a_mep_revoked_before_its_batch_ends_is_acknowledged_only_after_it_is_built_again() -> None:
    acknowledged = Acknowledgements()
    acknowledged.finish(7, [1])
    acknowledged.revoke(7, [(1, 3)], on_their_way={2})
    assert 1 not in acknowledged.done(7)
    assert acknowledged.finish(7, [2, 3]) == [3]
    assert acknowledged.ranges(7) == ((3, 3),)
    assert acknowledged.finish(7, [2]) == [2]
    assert acknowledged.ranges(7) == ((2, 3),)


def test_confirmed_meps_are_done_below_the_floor_and_not_at_it() -> None:
    acknowledged = Acknowledgements()
    acknowledged.acknowledged_below(7, 0)
    assert acknowledged.ranges(7) == ()
    acknowledged.acknowledged_below(7, 4)
    assert acknowledged.ranges(7) == ((0, 3),)
