"""How many MEPs a feeder may have unacknowledged, and when it is told."""

from hltnode.daemon.event_building.credit_window import CreditWindow
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord

EVENTS = 10
# Places of a slot.
PLACES = 8


def make_window(slots: int = 3) -> tuple[SlotPool, CreditWindow]:
    limits = SlotLimits(
        input_bytes=PLACES * 1024, events=PLACES * EVENTS, meps=PLACES, fragments=PLACES, mep_bytes=1024
    )
    pool = SlotPool(slots, limits)
    pool.expect_sources(1)
    pool.meps.start_run(7, (1,))
    window = CreditWindow(pool)
    window.start_run(EVENTS)
    return pool, window


def open_meps(pool: SlotPool, window: CreditWindow, *meps: int) -> None:
    for mep in meps:
        slot = pool.find_place(EVENTS)
        assert slot is not None
        record = MepRecord(
            mep=mep, slot=slot.index, first_event=mep * EVENTS, n_events=EVENTS, opened_ns=0, n_sources=1
        )
        pool.open_mep(record)
        window.opened()


def test_one_free_slot_backs_no_credits_while_none_fills() -> None:
    _, window = make_window()
    assert window.grant(small_steps=True) == 2 * PLACES
    assert (window.limit, window.outstanding) == (2 * PLACES, 2 * PLACES)


def test_the_limit_counts_meps_in_slots_and_outstanding_credits() -> None:
    pool, window = make_window()
    window.grant(small_steps=True)
    open_meps(pool, window, 0)
    assert (window.limit, window.outstanding) == (2 * PLACES, 2 * PLACES - 1)
    window.freed(1)
    assert (window.limit, window.outstanding) == (2 * PLACES - 1, 2 * PLACES - 1)


def test_places_of_a_filling_slot_back_credits_only_without_another_free_slot() -> None:
    pool, window = make_window(slots=2)
    window.grant(small_steps=True)
    open_meps(pool, window, 0)
    assert window.outstanding == PLACES - 1
    assert window.grant(small_steps=True) == 1
    open_meps(pool, window, *range(1, PLACES))
    pool.seal(pool.filling[0])
    open_meps(pool, window, PLACES)
    assert window.outstanding == 0
    # The second slot fills and the first is with the pipeline: the rest of the second is all there is.
    assert window.grant(small_steps=True) == PLACES - 1


def test_credits_are_never_revoked() -> None:
    pool, window = make_window()
    window.grant(small_steps=True)
    for slot in pool.slots[1:]:
        pool.filling.append(slot)
        pool.seal(slot)
    assert window.places == PLACES
    assert window.grant(small_steps=True) == 0
    assert window.outstanding == 2 * PLACES


def test_a_small_step_waits_for_a_tick() -> None:
    pool, window = make_window()
    window.grant(small_steps=True)
    open_meps(pool, window, *range(3))
    assert window.grant(small_steps=False) == 0
    open_meps(pool, window, 3)
    assert window.grant(small_steps=False) == 4
    open_meps(pool, window, 4)
    assert window.grant(small_steps=True) == 1


def test_the_window_is_low_below_half_a_slot_of_credits() -> None:
    pool, window = make_window()
    window.grant(small_steps=True)
    open_meps(pool, window, *range(2 * PLACES - PLACES // 2))
    assert not window.is_low
    open_meps(pool, window, 2 * PLACES)
    assert window.is_low


def test_feeders_are_told_when_the_limit_falls_or_the_credits_grow() -> None:
    pool, window = make_window()
    window.grant(small_steps=True)
    assert window.announce()
    assert not window.announce()
    open_meps(pool, window, 0)
    assert not window.announce()
    window.freed(1)
    assert window.announce()
    assert not window.announce()


def test_feeders_are_not_told_a_limit_that_they_know() -> None:
    pool, window = make_window()
    window.grant(small_steps=True)
    window.announce()
    open_meps(pool, window, *range(PLACES))
    pool.seal(pool.filling[0])
    pool.free(0)
    window.freed(PLACES)
    # As many credits as acknowledged MEPs: the acknowledgement lets feeders send as many.
    assert window.grant(small_steps=True) == PLACES
    assert not window.announce()


def test_a_new_run_begins_without_credits_and_its_limit_is_announced() -> None:
    _, window = make_window()
    window.grant(small_steps=True)
    assert window.announce()
    window.start_run(EVENTS)
    assert (window.limit, window.outstanding) == (0, 0)
    assert window.announce()
    window.grant(small_steps=True)
    window.announce()
    window.start_run(EVENTS)
    # The same limit in another run.
    window.grant(small_steps=True)
    assert window.announce()
