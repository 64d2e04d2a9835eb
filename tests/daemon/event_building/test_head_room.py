"""The rules for MEPs that come while the buffers are full."""

from dataclasses import replace

import pytest

from hltnode.daemon.common.vocabulary import CloseReason, HeadRoomRule, SlotState
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.stimuli_and_effects import (
    Effect,
    SealSlot,
    SlotAdvanced,
    SlotFreed,
    StartRun,
    Tick,
)
from tests.daemon.event_building.test_event_builder import EVENTS, MS, RUN, SOURCES, make_builder, send, send_mep
from tests.daemon.event_building.test_event_builder import fragment as fragment_of

KEEP, THIN, DROP = HeadRoomRule


def builder_of(rule: HeadRoomRule, *, slots: int = 3, meps_per_slot: int = 1, one_of: int = 3) -> EventBuilder:
    """A builder whose slots hold some MEPs each."""
    builder = make_builder(slots=slots, meps_per_slot=meps_per_slot, error_on=frozenset({CloseReason.TIMEOUT}))
    limits = replace(builder._limits, head_room=rule, thin_to_one_of=one_of)
    made = EventBuilder(builder.pool, limits, builder.counters)
    made.counters.is_streaming = True
    made.handle(0, StartRun(RUN, SOURCES, 0, EVENTS))
    return made


def rules(effects: list[Effect]) -> list[HeadRoomRule | None]:
    """The rule that drops each MEP of the sealed batches."""
    return [mep.dropped_by for effect in effects if isinstance(effect, SealSlot) for mep in effect.batch.meps]


def fill(builder: EventBuilder, states: tuple[SlotState, ...]) -> None:
    """Seal a slot for each state and advance it there."""
    for number, state in enumerate(states):
        effects = send_mep(builder, number)
        assert rules(effects) == [None]
        [sealed] = [effect.batch for effect in effects if isinstance(effect, SealSlot)]
        if state is not SlotState.SEALED:
            builder.handle(0, SlotAdvanced(sealed.slot, state))


@pytest.mark.parametrize(("rule", "expected"), [(KEEP, None), (DROP, DROP)])
def test_a_mep_is_dropped_when_all_other_slots_are_in_the_back_end(
    rule: HeadRoomRule, expected: HeadRoomRule | None
) -> None:
    builder = builder_of(rule)
    fill(builder, (SlotState.RUN, SlotState.SEALED))
    assert rules(send_mep(builder, 2)) == [expected]
    assert builder.counters.slices_dropped == {THIN: 0, DROP: int(rule is DROP)}


def test_a_slot_that_waits_for_an_output_drops_nothing() -> None:
    builder = builder_of(DROP)
    fill(builder, (SlotState.RUN, SlotState.DONE))
    assert rules(send_mep(builder, 2)) == [None]


def test_a_free_slot_drops_nothing() -> None:
    builder = builder_of(DROP, slots=4)
    fill(builder, (SlotState.RUN, SlotState.SEALED))
    assert rules(send_mep(builder, 2)) == [None]
    assert rules(send_mep(builder, 3)) == [DROP]


def test_thin_computes_one_of_a_number_of_meps_whatever_their_ids() -> None:
    builder = builder_of(THIN)
    fill(builder, (SlotState.RUN, SlotState.RUN))
    found = []
    for mep in range(6, 60, 6):
        effects = send_mep(builder, mep)
        found += rules(effects)
        [sealed] = [effect.batch for effect in effects if isinstance(effect, SealSlot)]
        builder.handle(0, SlotAdvanced(sealed.slot, SlotState.DONE))
        builder.handle(0, SlotFreed(sealed.slot))
    assert found == [None, THIN, THIN] * 3
    accounts = accounting(builder.counters, builder)
    assert accounts["slices"] == {
        "closed": 11, "computed": 5, "thin": 6, "drop": 0, "in_slots": 0, "unaccounted": 0,
    }  # fmt: skip


def test_thin_divides_the_meps_of_a_slot() -> None:
    builder = builder_of(THIN, meps_per_slot=4, one_of=2)
    for mep in range(8):
        send_mep(builder, mep)
    assert [each for mep in range(8, 12) for each in rules(send_mep(builder, mep))] == [None, THIN, None, THIN]


def test_slices_in_slots_are_in_the_accounts() -> None:
    builder = builder_of(DROP, meps_per_slot=4)
    for mep in range(10):
        send_mep(builder, mep)
    accounts = accounting(builder.counters, builder)
    assert accounts["slices"]["in_slots"] == 2
    assert closes(accounts)
    builder.counters.meps_sealed -= 1
    assert not closes(accounting(builder.counters, builder))


def test_a_dropped_mep_that_is_incomplete_is_not_kept_as_an_error_either() -> None:
    for rule in (KEEP, DROP):
        builder = builder_of(rule)
        fill(builder, (SlotState.RUN, SlotState.RUN))
        send(builder, fragment_of(2, SOURCES[0]))
        effects = [each for at in range(1, 40) for each in builder.handle(at * 50 * MS, Tick())]
        [mep] = [each for effect in effects if isinstance(effect, SealSlot) for each in effect.batch.meps]
        assert (mep.close_reason, mep.missing) == (CloseReason.TIMEOUT, SOURCES[1:])
        assert mep.error_stream == (rule is KEEP)
        assert [builder.counters.sources[source].late for source in SOURCES] == [0, 1, 1]
        assert [builder.counters.sources[source].missing for source in SOURCES] == [0, 1, 1]


def test_a_source_that_is_overtaken_is_missing_but_not_late() -> None:
    builder = builder_of(KEEP)
    send(builder, fragment_of(0, SOURCES[0]))
    send_mep(builder, 1)
    for at in (1, 2, 40):
        builder.handle(at * MS, Tick())
    assert builder.counters.meps_closed[CloseReason.OVERTAKEN] == 1
    assert [builder.counters.sources[source].missing for source in SOURCES] == [0, 1, 1]
    assert [builder.counters.sources[source].late for source in SOURCES] == [0, 0, 0]
