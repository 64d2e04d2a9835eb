"""A MEP that may be evicted is evicted at once: the builder requests the tick that does it."""

from hltnode.daemon.common.vocabulary import CloseReason
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.stimuli_and_effects import CloseMep, Effect, Tick
from tests.daemon.event_building.test_event_builder import (
    MS,
    SOURCES,
    fragment,
    make_builder,
    sealed,
    send,
    send_mep,
)


def closed(effects: list[Effect]) -> list[tuple[int, CloseReason | None]]:
    return [(effect.record.mep, effect.record.close_reason) for effect in effects if isinstance(effect, CloseMep)]


def two_slots_of_two_meps() -> EventBuilder:
    return make_builder(slots=2, meps_per_slot=2)


def test_a_mep_is_evicted_at_once_when_another_one_takes_the_last_place() -> None:
    builder = two_slots_of_two_meps()
    send_mep(builder, 0)
    send(builder, fragment(1, SOURCES[0]))
    for now in (5 * MS, 14 * MS):
        builder.handle(now, Tick())
    send(builder, fragment(2, SOURCES[0]), 15 * MS)
    assert builder.wake_ns > 15 * MS
    send(builder, fragment(3, SOURCES[0]), 15 * MS)
    assert builder.wake_ns == 15 * MS
    effects = builder.handle(15 * MS, Tick())
    assert closed(effects) == [(1, CloseReason.EVICTED)]
    assert sealed(effects) == [0]


def test_a_mep_is_evicted_at_once_when_the_first_of_its_slot_is_complete() -> None:
    builder = two_slots_of_two_meps()
    for mep in range(4):
        send(builder, fragment(mep, SOURCES[0]))
        builder.handle(0, Tick())
    assert closed(builder.handle(11 * MS, Tick())) == []
    send(builder, fragment(0, SOURCES[1]), 12 * MS)
    assert builder.wake_ns > 12 * MS
    send(builder, fragment(0, SOURCES[2]), 12 * MS)
    assert builder.wake_ns == 12 * MS
    assert closed(builder.handle(12 * MS, Tick())) == [(1, CloseReason.EVICTED)]


def test_the_tick_that_closes_a_mep_evicts_the_other_one_of_its_slot() -> None:
    builder = two_slots_of_two_meps()
    for mep in range(4):
        send(builder, fragment(mep, SOURCES[0]), 50 * MS * (mep > 0))
        builder.handle(50 * MS * (mep > 0), Tick())
    assert closed(builder.handle(99 * MS, Tick())) == []
    effects = builder.handle(100 * MS, Tick())
    assert closed(effects) == [(0, CloseReason.TIMEOUT), (1, CloseReason.EVICTED)]
    assert sealed(effects) == [0]
    assert builder.wake_ns > 100 * MS


def test_a_fragment_requests_no_immediate_tick_while_no_mep_can_be_evicted() -> None:
    builder = two_slots_of_two_meps()
    for mep in range(4):
        send(builder, fragment(mep, SOURCES[0]))
        builder.handle(0, Tick())
    builder.handle(11 * MS, Tick())
    for mep in range(4):
        send(builder, fragment(mep, SOURCES[1]), 12 * MS)
        assert builder.wake_ns > 12 * MS


def test_a_mep_that_still_gets_fragments_is_not_evicted() -> None:
    builder = two_slots_of_two_meps()
    send_mep(builder, 0)
    send(builder, fragment(1, SOURCES[0]))
    builder.handle(5 * MS, Tick())
    send(builder, fragment(1, SOURCES[1]), 9 * MS)
    for mep in (2, 3):
        send(builder, fragment(mep, SOURCES[0]), 9 * MS)
    assert closed(builder.handle(18 * MS, Tick())) == []
    assert closed(builder.handle(19 * MS, Tick())) == [(1, CloseReason.EVICTED)]
