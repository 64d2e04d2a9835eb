"""Slots: reservations, bump allocation and the order of states."""

import pytest

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord

LIMITS = SlotLimits(input_bytes=4096, events=40, meps=8, fragments=16, mep_bytes=1024)


def record(mep: int = 0, n_events: int = 10, slot: int = 0) -> MepRecord:
    return MepRecord(mep=mep, slot=slot, first_event=0, n_events=n_events, opened_ns=0, n_sources=0)


def test_an_open_mep_reserves_the_largest_size_and_gives_back_the_rest() -> None:
    slot = SlotPool(2, LIMITS).slots[0]
    mep = record()
    slot.open_mep(mep)
    assert slot.places(10) == 3
    mep.arrived.bytes = 24
    slot.close_mep(mep)
    assert slot.committed == 24
    assert slot.places(1) == (4096 - 24) // 1024


def test_an_abandoned_mep_leaves_the_slot_as_it_was() -> None:
    slot = SlotPool(2, LIMITS).slots[0]
    kept, abandoned = record(0), record(1, n_events=30)
    slot.open_mep(kept)
    slot.open_mep(abandoned)
    assert slot.places(1) == 0
    slot.abandon_mep(abandoned)
    assert (slot.meps, slot.open_meps, slot.events, slot.committed) == ([kept], 1, 10, 1024)
    assert slot.places(10) == 3


def test_the_events_of_a_slot_limit_its_places() -> None:
    slot = SlotPool(2, LIMITS).slots[0]
    assert slot.places(10) == 4
    assert slot.places(15) == 2
    slot.open_mep(record(n_events=31))
    assert slot.places(10) == 0


@pytest.mark.parametrize("limit", ["events", "meps", "bytes", "closing", "state", "none"])
def test_each_limit_of_a_slot_leaves_no_place_for_a_mep(limit: str) -> None:
    """One more event, MEP or byte than `none`, where there is exactly one place."""
    slot = SlotPool(2, LIMITS).slots[0]
    slot.max_meps = 3
    slot.meps = [record()] * (3 if limit == "meps" else 2)
    slot.events = 31 if limit == "events" else 30
    slot.committed = 3073 if limit == "bytes" else 3072
    slot.closing = limit == "closing"
    slot.state = SlotState.SEALED if limit == "state" else SlotState.FILLING
    assert slot.has_place(10) == (limit == "none")
    assert slot.places(10) == (limit == "none")


def test_a_new_mep_goes_to_the_slot_that_fills_longest() -> None:
    pool = SlotPool(2, LIMITS)
    first = pool.find_place(40)
    assert first is pool.slots[0]
    pool.open_mep(record(n_events=40))
    second = pool.find_place(10)
    assert second is pool.slots[1]
    pool.open_mep(record(n_events=10, slot=1))
    assert pool.find_place(31) is None


def test_a_slot_never_steps_back_in_the_order_of_states() -> None:
    pool = SlotPool(2, LIMITS)
    slot = pool.find_place(1)
    assert slot is not None
    pool.open_mep(record())
    pool.seal(slot)
    slot.advance(SlotState.DONE)
    with pytest.raises(ValueError, match="cannot go from done to run"):
        slot.advance(SlotState.RUN)
    pool.free(slot.index)
    assert pool.by_state()[SlotState.FREE] == 2


def test_a_pool_of_one_slot_is_refused() -> None:
    with pytest.raises(ValueError, match="two slots"):
        SlotPool(1, LIMITS)


def test_a_mep_larger_than_a_slot_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        SlotLimits(input_bytes=100, events=1, meps=1, fragments=1, mep_bytes=101)


def test_the_fragments_of_a_slot_limit_its_meps() -> None:
    pool = SlotPool(2, LIMITS)
    pool.expect_sources(8)
    assert pool.slots[0].places(1) == 2
    assert pool.empty_places(1) == 2
    with pytest.raises(ValueError, match="17 sources"):
        pool.expect_sources(17)
