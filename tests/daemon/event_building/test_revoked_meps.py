"""Revoked MEPs: their fragments are refused until the MEPs are returned or confirmed."""

import pytest

from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.stimuli_and_effects import (
    AcknowledgedBelow,
    Drain,
    EndRun,
    GrantCredit,
    Reject,
    ReturnMeps,
    RevokeMeps,
    StartRun,
)
from hltnode.protocol.errors import RejectReason
from tests.daemon.event_building.test_event_builder import (
    EVENTS,
    RUN,
    SOURCES,
    check_identities,
    fragment,
    make_builder,
    reasons,
    send,
    send_mep,
)


@pytest.fixture
def builder() -> EventBuilder:
    """MEP 0 is complete, MEP 1 open, MEP 2 never seen; all three are revoked."""
    builder = make_builder()
    send_mep(builder, 0)
    send(builder, fragment(1, SOURCES[0]))
    builder.handle(0, RevokeMeps(((0, 2),)))
    return builder


@pytest.mark.parametrize("mep", [0, 1, 2])
def test_a_late_fragment_of_a_revoked_mep_opens_no_mep_and_may_be_sent_again(builder: EventBuilder, mep: int) -> None:
    assert send(builder, fragment(mep, SOURCES[1])) == [Reject(RUN, RejectReason.REVOKED, SOURCES[1], mep, True)]
    assert builder.open == {}
    check_identities(builder)


def test_a_returned_mep_is_built_like_any_other(builder: EventBuilder) -> None:
    builder.handle(0, ReturnMeps(((1, 1),)))
    assert reasons(send_mep(builder, 1)) == []
    assert reasons(send(builder, fragment(2, SOURCES[0]))) == [RejectReason.REVOKED]
    check_identities(builder)


def test_confirmed_meps_are_late_and_no_longer_remembered_as_revoked(builder: EventBuilder) -> None:
    builder.handle(0, AcknowledgedBelow(2))
    assert reasons(send(builder, fragment(1, SOURCES[0]))) == [RejectReason.LATE]
    assert reasons(send(builder, fragment(2, SOURCES[0]))) == [RejectReason.REVOKED]


def test_a_resumed_run_knows_its_revoked_meps() -> None:
    builder = make_builder()
    builder.handle(0, EndRun())
    builder.handle(0, StartRun(RUN, SOURCES, 0, EVENTS, revoked=((3, 4),)))
    assert reasons(send(builder, fragment(3, SOURCES[0]))) == [RejectReason.REVOKED]
    assert reasons(send_mep(builder, 5)) == []


def test_a_revoked_mep_that_is_open_leaves_its_place_and_the_credits_held(builder: EventBuilder) -> None:
    # MEP 0 is complete: the back end drops it after it was computed.
    assert builder.window.held == 1
    builder.handle(0, ReturnMeps(((1, 1),)))
    send(builder, fragment(1, SOURCES[0]))
    assert builder.window.held == 2
    builder.handle(0, RevokeMeps(((1, 1),)))
    assert builder.window.held == 1


@pytest.mark.parametrize(("draining", "announced"), [(False, []), (True, [-1])])
def test_a_revocation_leaves_no_limit_that_feeders_do_not_know(*, draining: bool, announced: list[int]) -> None:
    """A hello before the next tick is answered with the limit: a feeder would keep it until its next hello."""
    builder = make_builder()
    limit = builder.window.limit
    send(builder, fragment(0, SOURCES[0]))
    if draining:
        builder.handle(0, Drain())
    effects = builder.handle(0, RevokeMeps(((0, 0),)))
    assert [each.meps - limit for each in effects if isinstance(each, GrantCredit)] == announced
    assert builder.window.limit - limit == sum(announced)
    check_identities(builder)
