"""MEPs that wait for no others while the back end has no batch (`seals_for_idle`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.stimuli_and_effects import (
    Abandon,
    Place,
    RevokeMeps,
    SealSlot,
    SlotAdvanced,
    SlotFreed,
    StartRun,
    Tick,
)
from tests.daemon.event_building.test_event_builder import (
    EVENTS,
    MS,
    RUN,
    SOURCES,
    check_identities,
    fragment,
    make_builder,
    sealed,
    send,
    send_mep,
)


def idle_builder() -> EventBuilder:
    made = make_builder(start=False)
    builder = EventBuilder(made.pool, replace(made._limits, seals_for_idle=True), made.counters)
    builder.handle(0, StartRun(RUN, SOURCES, 0, EVENTS))
    return builder


def advance(builder: EventBuilder, slot: int, *states: SlotState) -> list[int]:
    return [each for state in states for each in sealed(builder.handle(MS, SlotAdvanced(slot, state)))]


def test_a_complete_mep_is_sealed_at_once_while_the_back_end_is_idle() -> None:
    builder = idle_builder()
    assert sealed(send_mep(builder, 0)) == [0]
    check_identities(builder)


def test_without_the_rule_a_complete_mep_waits_for_the_deadline() -> None:
    builder = make_builder()
    assert sealed(send_mep(builder, 0)) == []
    assert sealed(builder.handle(20 * MS, Tick())) == [0]


def test_meps_that_come_during_a_batch_are_sealed_together_when_its_slot_is_free() -> None:
    builder = idle_builder()
    send_mep(builder, 0)
    assert sealed(send_mep(builder, 1)) == []
    assert advance(builder, 0, SlotState.RUN) == []
    assert sealed(send_mep(builder, 2)) == []
    # Slot 0 is computed, but not gathered: slot 1 has places for MEPs that feeders may send.
    assert advance(builder, 0, SlotState.DONE) == []
    effects = builder.handle(MS, SlotFreed(0))
    [batch] = [each.batch for each in effects if isinstance(each, SealSlot)]
    assert [mep.mep for mep in batch.meps] == [1, 2]
    check_identities(builder)


@pytest.mark.parametrize("state", [SlotState.SEALED, SlotState.RUN])
def test_a_batch_that_waits_or_is_computed_keeps_others_from_being_sealed(state: SlotState) -> None:
    builder = idle_builder()
    send_mep(builder, 0)
    if state is SlotState.RUN:
        advance(builder, 0, state)
    # With three MEPs, slot 1 backs no credits that feeders have: only the batch before keeps it from being sealed.
    assert [sealed(send_mep(builder, mep)) for mep in (1, 2, 3)] == [[]] * 3
    assert sealed(builder.handle(20 * MS, Tick())) == [1]


def test_a_slot_with_an_open_mep_is_not_sealed_for_an_idle_back_end() -> None:
    builder = idle_builder()
    send(builder, fragment(1, SOURCES[0]))
    assert sealed(send_mep(builder, 0)) == []
    effects = [send(builder, fragment(1, source)) for source in SOURCES[1:]]
    assert [sealed(each) for each in effects] == [[], [0]]


def test_a_slot_whose_only_mep_was_dropped_is_no_batch() -> None:
    builder = idle_builder()
    send_mep(builder, 0)
    send(builder, fragment(1, SOURCES[0]))
    builder.handle(0, Abandon())
    assert advance(builder, 0, SlotState.RUN, SlotState.DONE) == []


def test_a_slot_that_an_idle_back_end_may_have_after_a_revocation_is_sealed_by_a_tick_at_once() -> None:
    """An open MEP keeps the slot of the only complete one, until it is revoked."""
    builder = idle_builder()
    send(builder, fragment(1, SOURCES[0]))
    assert sealed(send_mep(builder, 0)) == []
    builder.handle(MS, RevokeMeps(((1, 1),)))
    assert builder.wake_ns == MS
    assert sealed(builder.handle(MS, Tick())) == [0]


@pytest.mark.parametrize("sources", [(SOURCES[0],), SOURCES])
def test_a_mep_that_is_not_sealed_at_once_has_a_tick_at_the_deadline_of_its_slot(sources: tuple[int, ...]) -> None:
    """Also one of a single source, which is complete with its first fragment."""
    made = make_builder(start=False)
    limits = replace(made._limits, seals_for_idle=True, flush_deadline_ns=MS)
    builder = EventBuilder(made.pool, limits, made.counters)
    builder.handle(0, StartRun(RUN, sources, 0, EVENTS))
    for mep in range(2):
        builder.handle(0, Tick())
        place = builder.place_for(0, *fragment(mep, sources[0]))
        assert isinstance(place, Place)
        is_sealed = bool(sealed(list(builder.fragment_copied(0, place))))
        assert is_sealed is (mep == 0 and len(sources) == 1)
        assert is_sealed or builder.wake_ns == MS
