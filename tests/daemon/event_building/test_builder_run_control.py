"""Run control of the builder: pause and resume, the end of a run, new deadlines."""

from hltnode.daemon.common.vocabulary import CloseReason
from hltnode.daemon.event_building.event_builder import SOON_NS
from hltnode.daemon.event_building.stimuli_and_effects import (
    CloseMep,
    CloseOpen,
    Drain,
    Effect,
    EndRun,
    GrantCredit,
    MepsAcknowledged,
    Place,
    Resume,
    SetTimes,
    SlotFreed,
    StartRun,
    Tick,
)
from hltnode.protocol.errors import RejectReason
from tests.daemon.event_building.test_event_builder import (
    EVENTS,
    MS,
    RUN,
    SOURCES,
    check_identities,
    fragment,
    make_builder,
    reasons,
    sealed,
    send,
    send_mep,
)


def test_no_credit_is_granted_between_drain_and_resume_but_granted_meps_are_built() -> None:
    builder = make_builder()
    builder.handle(0, Drain())
    effects = [effect for mep in range(builder.window.outstanding) for effect in send_mep(builder, mep)]
    effects += builder.handle(50 * MS, Tick())
    assert [e for e in effects if isinstance(e, CloseMep)]
    assert not [e for e in effects if isinstance(e, GrantCredit)]
    assert builder.window.outstanding == 0
    granted = [e for e in builder.handle(50 * MS, Resume()) if isinstance(e, GrantCredit)]
    assert [e.meps for e in granted] == [builder.window.limit]
    assert builder.window.outstanding > 0
    check_identities(builder)


def test_after_the_end_of_a_run_no_mep_opens_even_after_resume() -> None:
    builder = make_builder()
    send(builder, fragment(0, SOURCES[0]))
    builder.handle(0, EndRun())
    assert isinstance(send(builder, fragment(0, SOURCES[1]))[0], Place)
    effects = builder.handle(0, CloseOpen())
    assert [e.record.close_reason for e in effects if isinstance(e, CloseMep)] == [CloseReason.END_OF_RUN]
    assert builder.handle(0, Resume()) == []
    assert reasons(send(builder, fragment(1, SOURCES[0]))) == [RejectReason.NO_CREDIT]
    assert reasons(send(builder, fragment(0, SOURCES[0]))) == [RejectReason.DUPLICATE]
    assert reasons(send(builder, fragment(0, SOURCES[0], run=RUN + 1))) == [RejectReason.FOREIGN_RUN]
    check_identities(builder)


def test_a_new_run_starts_after_the_end_of_another_one() -> None:
    builder = make_builder()
    builder.handle(0, EndRun())
    builder.handle(0, StartRun(RUN + 1, SOURCES, 5, EVENTS))
    assert isinstance(send(builder, fragment(5, SOURCES[0], run=RUN + 1))[0], Place)


def test_new_deadlines_hold_at_once_for_open_meps() -> None:
    builder = make_builder()
    send(builder, fragment(0, SOURCES[0]))
    builder.handle(0, SetTimes(300 * MS, 20 * MS))
    send(builder, fragment(1, SOURCES[1]))
    assert not [e for e in builder.handle(299 * MS, Tick()) if isinstance(e, CloseMep)]
    closed = [e.record.mep for e in builder.handle(300 * MS, Tick()) if isinstance(e, CloseMep)]
    assert closed == [0, 1]
    check_identities(builder)


def credits(effects: list[Effect]) -> list[int]:
    return [each.meps for each in effects if isinstance(each, GrantCredit)]


def test_a_freed_slot_costs_no_message_of_credits_beside_its_acknowledgement() -> None:
    builder = make_builder(meps_per_slot=1)
    limit = builder.window.limit
    for mep in range(20):
        (slot,) = sealed(effects := send_mep(builder, mep))
        effects += builder.handle(0, SlotFreed(slot))
        effects += builder.handle(0, MepsAcknowledged((mep,)))
        assert credits(effects) == []
        assert (builder.window.limit, builder.window.held) == (limit, 0)
    check_identities(builder)


def test_a_freed_slot_gives_credits_at_once_if_few_are_left() -> None:
    builder = make_builder(meps_per_slot=1)
    slots = [slot for mep in range(3) for slot in sealed(send_mep(builder, mep))]
    assert builder.window.outstanding == 0
    assert credits(builder.handle(0, SlotFreed(slots[0]))) == [builder.window.limit]
    assert builder.window.outstanding == 1


def test_credits_of_a_held_slice_are_given_by_the_next_tick() -> None:
    builder = make_builder(meps_per_slot=1)
    (slot,) = sealed(send_mep(builder, 0))
    assert credits(builder.handle(0, SlotFreed(slot))) == []
    assert builder.wake_ns <= SOON_NS
    assert credits(builder.handle(SOON_NS, Tick())) == [builder.window.limit]
    assert (builder.window.held, builder.window.outstanding) == (1, 2)
