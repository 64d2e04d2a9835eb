"""Which MEP ids are refused, and with which reason."""

import pytest

from hltnode.daemon.event_building.closed_meps import ClosedMeps
from hltnode.protocol.errors import RejectReason

SPAN = 8
OWN, OTHER = 1, 2


def refusals(closed: ClosedMeps, *meps: int, source: int = OWN) -> list[RejectReason | None]:
    return [closed.refusal(mep, source) for mep in meps]


def test_ids_from_the_floor_to_the_span_are_accepted() -> None:
    closed = ClosedMeps(SPAN, floor=10)
    assert refusals(closed, 9, 10, 17, 18) == [RejectReason.LATE, None, None, RejectReason.NO_CREDIT]


def test_a_closed_mep_refuses_what_had_arrived_as_duplicate_and_the_rest_as_late() -> None:
    closed = ClosedMeps(SPAN)
    closed.close(3, OWN)
    assert closed.is_closed(3)
    assert closed.refusal(3, OWN) is RejectReason.DUPLICATE
    assert closed.refusal(3, OTHER) is RejectReason.LATE
    assert refusals(closed, 2, 4) == [None, None]
    # Its entry of the ring serves the next id.
    closed.raise_floor(4)
    assert not closed.is_closed(11)
    assert refusals(closed, 11) == [None]
    closed.close(11, OTHER)
    assert refusals(closed, 3, 11) == [RejectReason.LATE, RejectReason.LATE]


def test_a_complete_mep_refuses_every_source_as_duplicate() -> None:
    closed = ClosedMeps(SPAN)
    closed.close(3)
    assert closed.is_closed(3)
    assert [closed.refusal(3, source) for source in (OWN, OTHER)] == [RejectReason.DUPLICATE] * 2


def test_the_sources_of_an_incomplete_mep_are_forgotten_with_its_entry_of_the_ring() -> None:
    closed = ClosedMeps(SPAN)
    closed.close(3, OWN)
    closed.raise_floor(4)
    closed.close(3 + SPAN)
    assert not closed._sources_of


def test_a_mep_that_returns_after_an_incomplete_close_can_be_complete() -> None:
    closed = ClosedMeps(SPAN)
    closed.close(3, OWN)
    closed.revoke([(3, 3)])
    closed.give_back([(3, 3)])
    closed.close(3)
    assert closed.refusal(3, OTHER) is RejectReason.DUPLICATE


def test_meps_of_an_earlier_session_are_duplicates_and_those_of_another_node_are_revoked() -> None:
    closed = ClosedMeps(SPAN, done=[(1, 2)], revoked=[(2, 3)])
    assert refusals(closed, 0, 1, 2, 3, 4) == [
        None,
        RejectReason.DUPLICATE,
        RejectReason.DUPLICATE,
        RejectReason.REVOKED,
        None,
    ]


@pytest.mark.parametrize("how", ["closed", "done", "open"])
def test_a_mep_that_was_revoked_and_returned_is_built_again_whatever_it_was_before(how: str) -> None:
    closed = ClosedMeps(SPAN, done=[(3, 3)] if how == "done" else [])
    if how == "closed":
        closed.close(3, OWN)
    closed.revoke([(3, 3)])
    assert not closed.is_closed(3)
    assert refusals(closed, 2, 3, 4) == [None, RejectReason.REVOKED, None]
    closed.give_back([(3, 3)])
    assert refusals(closed, 2, 3, 4) == [None, None, None]


def test_only_the_ids_of_the_ranges_are_revoked_and_returned() -> None:
    closed = ClosedMeps(SPAN, done=[(0, 7)])
    closed.revoke([(1, 2), (5, 5)])
    assert [mep for mep in range(8) if closed.refusal(mep, OWN) is RejectReason.REVOKED] == [1, 2, 5]
    closed.give_back([(2, 4)])
    assert refusals(closed, 1, 2, 3, 5) == [
        RejectReason.REVOKED,
        None,
        RejectReason.DUPLICATE,
        RejectReason.REVOKED,
    ]


def test_below_the_floor_everything_is_late_and_the_floor_never_falls() -> None:
    closed = ClosedMeps(SPAN, revoked=[(1, 5)])
    closed.raise_floor(3)
    closed.raise_floor(2)
    assert closed.floor == 3
    assert refusals(closed, 1, 2, 3, 10, 11) == [
        RejectReason.LATE,
        RejectReason.LATE,
        RejectReason.REVOKED,
        None,
        RejectReason.NO_CREDIT,
    ]
