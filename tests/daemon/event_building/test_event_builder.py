"""The event builder without sockets: stimuli in, effects and counts out."""

from hltnode.daemon.common.vocabulary import CloseReason, SlotState
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import (
    Abandon,
    AcknowledgedBelow,
    BuilderLimits,
    CloseMep,
    CloseOpen,
    Drain,
    Effect,
    FragmentArrived,
    FrameDamaged,
    GrantCredit,
    MepsAcknowledged,
    Place,
    Reject,
    SealSlot,
    SlotAdvanced,
    SlotFreed,
    StartRun,
    Tick,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.protocol.errors import RejectReason

MS = 1_000_000
RUN = 7
SOURCES = (10, 20, 30)
EVENTS = 10


def make_builder(
    *,
    slots: int = 3,
    meps_per_slot: int = 4,
    sources: tuple[int, ...] = SOURCES,
    ring: int = 64,
    start: bool = True,
    error_on: frozenset[CloseReason] = frozenset(),
) -> EventBuilder:
    slot_limits = SlotLimits(
        input_bytes=meps_per_slot * 1024, events=meps_per_slot * EVENTS, meps=64, fragments=1024, mep_bytes=1024
    )
    pool = SlotPool(slots, slot_limits)
    limits = BuilderLimits(
        mep_timeout_ns=100 * MS,
        feeder_timeout_ns=1000 * MS,
        overtaken_ns=30 * MS,
        evict_ns=10 * MS,
        flush_deadline_ns=20 * MS,
        closed_ring=ring,
        error_on=error_on,
    )
    builder = EventBuilder(pool, limits, Counters())
    if start:
        builder.handle(0, StartRun(RUN, sources, 0, EVENTS))
    return builder


def fragment(
    mep: int, source: int, *, size: int = 100, run: int = RUN, events: int = EVENTS, first: int | None = None
) -> FragmentArrived:
    return FragmentArrived(run, source, mep, size, mep * EVENTS if first is None else first, events)


def send(builder: EventBuilder, arrived: FragmentArrived, now: int = 0) -> list[Effect]:
    builder.counters.fragments_received += 1
    return builder.handle(now, arrived)


def send_mep(builder: EventBuilder, mep: int, now: int = 0, size: int = 100) -> list[Effect]:
    return [e for source in SOURCES for e in send(builder, fragment(mep, source, size=size), now)]


def reasons(effects: list[Effect]) -> list[RejectReason]:
    return [e.reason for e in effects if isinstance(e, Reject)]


def sealed(effects: list[Effect]) -> list[int]:
    return [e.batch.slot for e in effects if isinstance(e, SealSlot)]


def leave(builder: EventBuilder, slot: int, now: int = 0) -> list[Effect]:
    """Gather and acknowledge a slot; returns the last effects."""
    meps = tuple(mep.mep for mep in builder.pool.slots[slot].meps)
    builder.handle(now, SlotFreed(slot))
    return builder.handle(now, MepsAcknowledged(meps))


def check_identities(builder: EventBuilder) -> None:
    accounts = accounting(builder.counters, builder)
    assert closes(accounts), accounts


def test_a_damaged_frame_requests_no_tick() -> None:
    builder = make_builder()
    builder.handle(0, Tick())
    before = builder.wake_ns
    builder.handle(1, FrameDamaged(RejectReason.BAD_CRC, SOURCES[0], 0, resend=True))
    assert builder.wake_ns == before


def test_a_mep_with_all_its_sources_closes_as_complete() -> None:
    builder = make_builder()
    effects = send_mep(builder, 0)
    records = [e.record for e in effects if isinstance(e, CloseMep)]
    assert [(r.mep, r.close_reason, r.missing) for r in records] == [(0, CloseReason.COMPLETE, ())]
    assert records[0].fragments.tolist() == [[10, 0, 100], [20, 104, 100], [30, 208, 100]]
    assert builder.counters.meps_closed[CloseReason.COMPLETE] == 1
    check_identities(builder)


def test_fragments_of_several_meps_interleave_at_aligned_offsets() -> None:
    builder = make_builder()
    places = [
        (e.slot, e.offset)
        for mep, source in ((0, 10), (1, 10), (0, 20), (1, 20))
        for e in send(builder, fragment(mep, source, size=13))
        if isinstance(e, Place)
    ]
    assert places == [(0, 0), (0, 16), (0, 32), (0, 48)]


def test_the_last_fragment_is_placed_before_its_mep_closes() -> None:
    builder = make_builder(sources=(10,))
    effects = send(builder, fragment(0, 10))
    assert [type(e) for e in effects[:2]] == [Place, CloseMep]


def test_a_mep_with_a_missing_source_closes_by_timeout_and_names_it() -> None:
    builder = make_builder()
    send(builder, fragment(0, 10), now=5 * MS)
    assert not [e for e in builder.handle(104 * MS, Tick()) if isinstance(e, CloseMep)]
    [closed] = [e for e in builder.handle(105 * MS, Tick()) if isinstance(e, CloseMep)]
    assert closed.record.close_reason is CloseReason.TIMEOUT
    assert closed.record.missing == (20, 30)
    assert builder.counters.sources[20].missing == 1
    assert builder.counters.sources[10].missing == 0
    check_identities(builder)


def test_the_second_copy_of_a_fragment_is_a_duplicate_while_its_mep_is_open() -> None:
    builder = make_builder()
    send(builder, fragment(0, 10))
    assert send(builder, fragment(0, 10)) == [Reject(RUN, RejectReason.DUPLICATE, 10, 0, False)]
    check_identities(builder)


def test_after_the_close_an_arrived_source_is_a_duplicate_and_a_missing_one_is_late() -> None:
    builder = make_builder()
    send(builder, fragment(0, 10))
    builder.handle(200 * MS, Tick())
    assert reasons(send(builder, fragment(0, 10))) == [RejectReason.DUPLICATE]
    assert reasons(send(builder, fragment(0, 20))) == [RejectReason.LATE]
    check_identities(builder)


def test_an_id_below_the_floor_is_late_and_one_beyond_the_ring_gets_no_credit() -> None:
    builder = make_builder(ring=16)
    assert reasons(send(builder, fragment(16, 10))) == [RejectReason.NO_CREDIT]
    builder.handle(0, AcknowledgedBelow(5))
    assert reasons(send(builder, fragment(3, 10))) == [RejectReason.LATE]
    assert reasons(send_mep(builder, 16)) == []
    assert reasons(send(builder, fragment(21, 10))) == [RejectReason.NO_CREDIT]
    builder.handle(0, AcknowledgedBelow(2))
    assert builder.floor == 5


def test_a_mep_that_an_earlier_session_has_finished_is_a_duplicate() -> None:
    builder = make_builder(start=False)
    builder.handle(0, StartRun(RUN, SOURCES, 0, EVENTS, done=((0, 2), (4, 4))))
    assert reasons(send(builder, fragment(1, 10))) == [RejectReason.DUPLICATE]
    assert reasons(send(builder, fragment(4, 10))) == [RejectReason.DUPLICATE]
    assert reasons(send_mep(builder, 3)) == []
    check_identities(builder)


def test_a_mep_is_overtaken_when_its_missing_sources_have_delivered_younger_ones() -> None:
    builder = make_builder()
    send(builder, fragment(0, 10))
    send(builder, fragment(1, 20))
    builder.handle(MS, Tick())
    assert builder.open[0].overtaken_ns is None
    send(builder, fragment(2, 30), now=2 * MS)
    assert not [e for e in builder.handle(3 * MS, Tick()) if isinstance(e, CloseMep)]
    [closed] = [e.record for e in builder.handle(33 * MS, Tick()) if isinstance(e, CloseMep)]
    assert (closed.mep, closed.close_reason, closed.missing) == (0, CloseReason.OVERTAKEN, (20, 30))
    assert set(builder.open) == {1, 2}
    check_identities(builder)


def test_a_mep_refused_for_lack_of_a_place_is_not_overtaken_by_meps_sent_since() -> None:
    builder = make_builder()
    limit = 0
    while builder.window.outstanding > 0:
        send_mep(builder, limit)
        limit += 1
    assert reasons(send(builder, fragment(limit, 10))) == [RejectReason.NO_CREDIT]
    for slot in range(3):
        leave(builder, slot)
    send(builder, fragment(limit, 20), now=MS)
    for source in SOURCES[:2]:
        send(builder, fragment(limit + 1, source), now=2 * MS)
    send(builder, fragment(limit + 1, 30), now=2 * MS)
    builder.handle(3 * MS, Tick())
    assert not [e for e in builder.handle(60 * MS, Tick()) if isinstance(e, CloseMep)]
    for source in (10, 30):
        send(builder, fragment(limit, source), now=70 * MS)
    assert builder.counters.meps_closed[CloseReason.OVERTAKEN] == 0
    assert builder.counters.meps_closed[CloseReason.COMPLETE] == limit + 2
    check_identities(builder)


def test_a_younger_complete_mep_overtakes_older_ones_except_those_of_a_silent_source() -> None:
    builder = make_builder()
    send(builder, fragment(0, 10))
    send_mep(builder, 1)
    send(builder, fragment(2, 10))
    builder.handle(0, Tick())
    closed = [e.record for e in builder.handle(30 * MS, Tick()) if isinstance(e, CloseMep)]
    assert [(r.mep, r.close_reason) for r in closed] == [(0, CloseReason.OVERTAKEN)]
    closed = [e.record for e in builder.handle(100 * MS, Tick()) if isinstance(e, CloseMep)]
    assert [(r.mep, r.close_reason) for r in closed] == [(2, CloseReason.TIMEOUT)]


def test_a_fragment_sent_again_in_time_completes_an_overtaken_mep() -> None:
    builder = make_builder()
    send(builder, fragment(0, 10))
    send(builder, fragment(0, 20))
    send_mep(builder, 1)
    builder.handle(0, Tick())
    send(builder, fragment(0, 30), now=29 * MS)
    assert builder.counters.meps_closed[CloseReason.COMPLETE] == 2


def test_the_oldest_incomplete_mep_is_evicted_when_complete_meps_wait_and_no_place_is_left() -> None:
    builder = make_builder(slots=2, meps_per_slot=2)
    send(builder, fragment(1, 10))
    send_mep(builder, 0)
    send(builder, fragment(2, 10))
    assert not [e for e in builder.handle(20 * MS, Tick()) if isinstance(e, CloseMep)]
    send(builder, fragment(3, 10))
    effects = builder.handle(20 * MS, Tick())
    [closed] = [e.record for e in effects if isinstance(e, CloseMep)]
    assert (closed.mep, closed.close_reason) == (1, CloseReason.EVICTED)
    assert sealed(effects) == [0]
    assert not [e for e in builder.handle(21 * MS, Tick()) if isinstance(e, CloseMep)]
    check_identities(builder)


def test_the_policy_of_a_close_reason_sends_its_meps_to_the_error_stream() -> None:
    builder = make_builder(error_on=frozenset({CloseReason.TIMEOUT}))
    send_mep(builder, 0)
    send(builder, fragment(1, 10))
    builder.handle(100 * MS, Tick())
    send(builder, fragment(2, 10), now=101 * MS)
    builder.handle(101 * MS, CloseOpen())
    by_mep = {r.mep: r.error_stream for slot in builder.pool.slots for r in slot.meps}
    assert by_mep == {0: False, 1: True, 2: False}


def test_a_foreign_run_and_an_unknown_source_are_rejected_for_good() -> None:
    builder = make_builder()
    assert send(builder, fragment(0, 10, run=8)) == [Reject(8, RejectReason.FOREIGN_RUN, 10, 0, False)]
    assert send(builder, fragment(0, 11)) == [Reject(RUN, RejectReason.UNKNOWN_SOURCE, 11, 0, False)]
    assert not builder.open
    check_identities(builder)


def test_before_the_run_starts_no_fragment_has_credit() -> None:
    builder = make_builder(start=False)
    assert send(builder, fragment(0, 10)) == [Reject(RUN, RejectReason.NO_CREDIT, 10, 0, True)]


def test_a_mep_without_credit_is_refused_and_may_be_sent_again() -> None:
    builder = make_builder()
    limit = builder.window.limit
    for mep in range(limit):
        assert reasons(send(builder, fragment(mep, 10))) == []
    assert send(builder, fragment(limit, 10))[0] == Reject(RUN, RejectReason.NO_CREDIT, 10, limit, True)
    assert reasons(send(builder, fragment(10**12, 10))) == [RejectReason.NO_CREDIT]
    check_identities(builder)


def test_a_fragment_that_disagrees_on_the_events_of_its_mep_is_a_mismatch() -> None:
    builder = make_builder()
    send(builder, fragment(0, 10))
    assert reasons(send(builder, fragment(0, 20, events=9))) == [RejectReason.MISMATCH]
    assert reasons(send(builder, fragment(0, 20, first=1))) == [RejectReason.MISMATCH]
    check_identities(builder)


def test_a_mep_beyond_its_announced_size_is_oversized() -> None:
    builder = make_builder()
    assert reasons(send(builder, fragment(0, 10, events=EVENTS + 1))) == [RejectReason.OVERSIZED]
    assert reasons(send(builder, fragment(0, 10, size=1025))) == [RejectReason.OVERSIZED]
    send(builder, fragment(0, 10, size=800))
    assert reasons(send(builder, fragment(0, 20, size=300))) == [RejectReason.OVERSIZED]
    check_identities(builder)


def test_a_slot_is_sealed_when_no_mep_fits_any_more() -> None:
    builder = make_builder(meps_per_slot=2)
    assert sealed(send_mep(builder, 0)) == []
    assert sealed(send_mep(builder, 1)) == [0]
    assert builder.pool.slots[0].state is SlotState.SEALED
    assert [e.slot for e in send_mep(builder, 2) if isinstance(e, Place)] == [1, 1, 1]


def test_a_full_slot_waits_for_its_open_meps() -> None:
    builder = make_builder(meps_per_slot=2)
    send(builder, fragment(0, 10))
    assert sealed(send_mep(builder, 1)) == []
    assert sealed(send(builder, fragment(0, 20)) + send(builder, fragment(0, 30))) == [0]


def test_a_slot_is_sealed_at_its_deadline_once_its_meps_are_closed() -> None:
    builder = make_builder()
    send_mep(builder, 0)
    send(builder, fragment(1, 10), now=MS)
    assert sealed(builder.handle(20 * MS, Tick())) == []
    assert builder.pool.slots[0].closing
    assert [e.slot for e in send_mep(builder, 2, now=21 * MS) if isinstance(e, Place)] == [1, 1, 1]
    assert sealed(builder.handle(101 * MS, Tick())) == [0]


def test_a_deadline_waits_while_only_this_slot_backs_the_credits() -> None:
    builder = make_builder(slots=2, meps_per_slot=2)
    send_mep(builder, 0)
    assert sealed(send_mep(builder, 1)) == [0]
    send_mep(builder, 2)
    assert builder.window.outstanding == 1
    assert sealed(builder.handle(50 * MS, Tick())) == []
    leave(builder, 0, 50 * MS)
    assert sealed(builder.handle(51 * MS, Tick())) == [1]


def test_credits_follow_the_free_slots() -> None:
    builder = make_builder(slots=2, meps_per_slot=2, start=False)
    assert builder.handle(0, StartRun(RUN, SOURCES, 100, EVENTS)) == [GrantCredit(RUN, 2)]
    for mep in (100, 101, 110, 109):
        assert reasons(send_mep(builder, mep)) == []
    assert (builder.window.held, builder.window.outstanding) == (4, 0)
    assert builder.handle(0, SlotFreed(0)) == [GrantCredit(RUN, 6)]
    assert (builder.window.held, builder.window.outstanding) == (4, 2)
    assert builder.handle(0, MepsAcknowledged((100, 101))) == [GrantCredit(RUN, 4)]
    assert (builder.window.held, builder.window.outstanding) == (2, 2)


def test_gathered_meps_stay_unacknowledged_while_their_slot_fills_again() -> None:
    builder = make_builder(slots=2, meps_per_slot=1)
    assert sealed(send_mep(builder, 0)) == [0]
    builder.handle(0, SlotFreed(0))
    assert (builder.is_computing, builder.awaits_acknowledgement, builder.is_idle) == (False, True, False)
    assert builder.unacknowledged_meps() == {0}
    assert sealed(send_mep(builder, 1)) == [0]
    assert builder.unacknowledged_meps() == {0, 1}
    assert reasons(send(builder, fragment(0, 10))) == [RejectReason.DUPLICATE]
    builder.handle(0, SlotFreed(0))
    builder.handle(0, MepsAcknowledged((0, 1)))
    assert (builder.awaits_acknowledgement, builder.is_idle) == (False, True)
    assert builder.window.held == 0


def test_every_credit_finds_a_place() -> None:
    builder = make_builder()
    freed: list[int] = []
    for mep in range(200):
        assert builder.window.outstanding > 0
        builder.handle(mep * 7 * MS, AcknowledgedBelow(mep - 30))
        effects = send_mep(builder, mep, now=mep * 7 * MS)
        effects += builder.handle(mep * 7 * MS, Tick())
        assert reasons(effects) == []
        freed += sealed(effects)
        if len(freed) == 2:
            leave(builder, freed.pop(0), mep * 7 * MS)


def test_a_drain_grants_no_credits_and_builds_granted_meps() -> None:
    builder = make_builder(slots=2, meps_per_slot=2)
    builder.handle(0, Drain())
    limit = builder.window.limit
    for mep in range(limit):
        effects = send_mep(builder, mep)
        assert reasons(effects) == []
        for slot in sealed(effects):
            # The limit falls by the number of acknowledged MEPs, so no others may come in their place.
            assert leave(builder, slot) == [GrantCredit(RUN, builder.window.limit)]
    assert builder.window.outstanding == 0
    assert reasons(send(builder, fragment(limit, 10))) == [RejectReason.NO_CREDIT]


def test_close_open_builds_open_meps_with_the_reason_end_of_run() -> None:
    builder = make_builder()
    send(builder, fragment(0, 10))
    effects = builder.handle(MS, CloseOpen())
    assert isinstance(effects[0], CloseMep)
    assert effects[0].record.close_reason is CloseReason.END_OF_RUN
    assert sealed(effects) == [0]
    check_identities(builder)


def test_fragments_of_abandoned_meps_are_counted_as_abandoned() -> None:
    builder = make_builder()
    send_mep(builder, 0)
    send(builder, fragment(1, 10))
    builder.handle(MS, Abandon())
    assert builder.counters.fragments_abandoned == 1
    assert builder.counters.meps_abandoned == 1
    assert sealed(builder.handle(30 * MS, Tick())) == [0]
    assert [r.mep for r in builder.pool.slots[0].meps] == [0]
    check_identities(builder)


def test_a_second_run_starts_from_its_own_first_mep_without_closed_meps() -> None:
    builder = make_builder()
    send_mep(builder, 0)
    builder.handle(0, CloseOpen())
    leave(builder, 0)
    builder.handle(0, StartRun(8, (10,), 0, EVENTS))
    assert reasons(send(builder, fragment(0, 10, run=8))) == []
    assert reasons(send(builder, fragment(0, 10))) == [RejectReason.FOREIGN_RUN]
    check_identities(builder)


def test_half_full_slots_without_further_input_are_sealed_one_by_one_at_the_deadline() -> None:
    builder = make_builder(slots=2)
    meps: list[int] = []
    # Incomplete MEPs reserve more bytes than they need in the end.
    while builder.window.outstanding:
        meps.append(len(meps))
        assert not reasons(send(builder, fragment(meps[-1], SOURCES[0], events=1)))
        builder.handle(0, Tick())
    for source in SOURCES[1:]:
        for mep in meps:
            send(builder, fragment(mep, source, events=1))
    assert builder.open == {}
    assert len(builder.pool.filling) == 2
    builder.handle(MS, Tick())
    assert builder.window.outstanding > 0
    effects = builder.handle(25 * MS, Tick())
    assert sealed(effects) == [0]
    assert sealed(builder.handle(30 * MS, Tick())) == []
    for state in (SlotState.RUN, SlotState.DONE):
        builder.handle(25 * MS, SlotAdvanced(0, state))
    leave(builder, 0, 31 * MS)
    assert sealed(builder.handle(31 * MS, Tick())) == [1]
    check_credits_are_backed(builder)
    check_identities(builder)


def check_credits_are_backed(builder: EventBuilder) -> None:
    places = builder.pool.free_slots * builder.pool.empty_places(EVENTS) + builder.pool.filling_places(EVENTS)
    assert 0 <= builder.window.outstanding <= places


def test_a_slot_that_waits_for_one_open_mep_is_due_when_that_mep_is_abandoned() -> None:
    builder = make_builder()
    send_mep(builder, 0)
    send(builder, fragment(1, SOURCES[0]), 19 * MS)
    assert not any(isinstance(effect, SealSlot) for effect in builder.handle(20 * MS, Tick()))
    assert builder.wake_ns > 21 * MS
    builder.handle(21 * MS, Abandon())
    assert builder.wake_ns == 21 * MS
    assert any(isinstance(effect, SealSlot) for effect in builder.handle(21 * MS, Tick()))
