"""Feeders of different rates: without a faulty feeder, every MEP is complete."""

from collections import deque
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.daemon.common.vocabulary import CloseReason, SlotState
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import (
    AcknowledgedBelow,
    AwaitedFeeder,
    AwaitFeeders,
    BuilderLimits,
    CloseMep,
    Effect,
    FragmentArrived,
    GrantCredit,
    MepsAcknowledged,
    Reject,
    SealSlot,
    SlotAdvanced,
    SlotFreed,
    StartRun,
    Tick,
)
from hltnode.daemon.monitoring.counters import Counters

MS = 1_000_000
RUN = 1
EVENTS = 4
TICK_MS = 5
PATIENCE_MS = 2000
MEP_TIMEOUT_MS = 100
N_MEPS = 40


@dataclass
class Feeder:
    """Sends its sources of each MEP in the order of ids, as the credits and its pace allow.

    `start_ms` after the start of the run it has its first MEP, then one every `period_ms` on average: of `burst` MEPs
    each, and its fragments leave one by one, `gap_ms` apart. It stands still once, for `pause_ms`. All fragments
    of the MEPs in `overtaken` leave behind the next fragment of the feeder, a millisecond later.
    """

    sources: tuple[int, ...]
    start_ms: int
    period_ms: int
    burst: int
    gap_ms: int
    pause_at: int
    pause_ms: int
    overtaken: frozenset[int] = frozenset()
    next_mep: int = 0
    unsent: deque[tuple[int, int]] = field(default_factory=deque)
    unacknowledged: set[int] = field(default_factory=set)
    free_ms: int = 0

    def ready(self, now_ms: int, n_meps: int, limit: int) -> tuple[int, int] | None:
        """The next (MEP, source) that may be sent now."""
        while self.next_mep < n_meps and now_ms >= self.due_ms() and len(self.unacknowledged) < limit:
            self.unacknowledged.add(self.next_mep)
            self.unsent += [(self.next_mep, source) for source in self.sources]
            self.next_mep += 1
        if not self.unsent or now_ms < self.free_ms:
            return None
        mep, source = self.unsent[0]
        if source == self.sources[0] and mep in self.overtaken:
            return self._overtaking(now_ms)
        self.free_ms = now_ms + self.gap_ms
        return self.unsent.popleft()

    def _overtaking(self, now_ms: int) -> tuple[int, int] | None:
        """The first fragment of the next MEP, which the overtaken ones follow; none if there is no credit for it."""
        mep = self.unsent[0][0]
        younger = next((each for each in self.unsent if each[0] > mep), None)
        if younger is None and now_ms < self.due_ms():
            return None
        self.overtaken -= {mep}
        self.free_ms = now_ms + 1
        self.unsent.remove(younger or self.unsent[0])
        return younger or (mep, self.sources[0])

    def due_ms(self) -> int:
        pause = self.pause_ms if self.next_mep >= self.pause_at else 0
        return self.start_ms + pause + self.next_mep // self.burst * self.burst * self.period_ms


class Simulation:
    """A builder, its feeders, and a pipeline that gives each slot back after some time."""

    def __init__(self, feeders: list[Feeder], *, slots: int, meps_per_slot: int, compute_ms: int, n_meps: int) -> None:
        pool = SlotPool(
            slots,
            SlotLimits(
                input_bytes=meps_per_slot * 1024, events=meps_per_slot * EVENTS, meps=64, fragments=1024, mep_bytes=1024
            ),
        )
        limits = BuilderLimits(
            mep_timeout_ns=MEP_TIMEOUT_MS * MS,
            feeder_timeout_ns=PATIENCE_MS * MS,
            overtaken_ns=30 * MS,
            evict_ns=50 * MS,
            flush_deadline_ns=20 * MS,
            closed_ring=4096,
        )
        self.builder = EventBuilder(pool, limits, Counters())
        self.feeders = feeders
        self.n_meps = n_meps
        self.compute_ms = compute_ms
        self.now_ms = 0
        self.limit = 0
        self.acknowledged: set[int] = set()
        self.closed: dict[int, CloseReason] = {}
        self.rejected: list[Reject] = []
        self.computing: deque[tuple[int, SealSlot]] = deque()
        sources = tuple(source for feeder in feeders for source in feeder.sources)
        self.carry_out(self.builder.handle(0, StartRun(RUN, sources, 0, EVENTS)))
        self.builder.handle(0, AwaitFeeders(tuple(AwaitedFeeder(feeder.sources, None) for feeder in feeders)))

    def carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case GrantCredit(_, meps):
                    self.limit = meps
                case CloseMep(record):
                    assert record.close_reason is not None
                    self.closed[record.mep] = record.close_reason
                case SealSlot():
                    self.computing.append((self.now_ms + self.compute_ms, effect))
                case Reject():
                    self.rejected.append(effect)
                case _:
                    pass

    def step(self) -> None:
        now_ns = self.now_ms * MS
        while self.computing and self.computing[0][0] <= self.now_ms:
            batch = self.computing.popleft()[1].batch
            self.builder.handle(now_ns, SlotAdvanced(batch.slot, SlotState.DONE))
            self.carry_out(self.builder.handle(now_ns, SlotFreed(batch.slot)))
            self.carry_out(self.builder.handle(now_ns, MepsAcknowledged(tuple(mep.mep for mep in batch.meps))))
            for mep in batch.meps:
                self.acknowledged.add(mep.mep)
                for feeder in self.feeders:
                    feeder.unacknowledged.discard(mep.mep)
        waiting = True
        while waiting:
            waiting = False
            for feeder in self.feeders:
                if (ready := feeder.ready(self.now_ms, self.n_meps, self.limit)) is not None:
                    waiting = True
                    mep_id, source = ready
                    self.builder.counters.fragments_received += 1
                    arrived = FragmentArrived(RUN, source, mep_id, 20, mep_id * EVENTS, EVENTS)
                    self.carry_out(self.builder.handle(now_ns, arrived))
        floor = min((min(feeder.unacknowledged, default=feeder.next_mep) for feeder in self.feeders), default=0)
        if floor > self.builder.floor:
            self.builder.handle(now_ns, AcknowledgedBelow(floor))
        self.carry_out(self.builder.handle(now_ns, Tick()))
        self.now_ms += TICK_MS

    def run(self, limit_ms: int) -> None:
        while len(self.acknowledged) < self.n_meps:
            assert self.now_ms < limit_ms, "the run does not come to its end"
            self.step()


def feeders_of(n_sources: int) -> st.SearchStrategy[Feeder]:
    return st.builds(
        Feeder,
        sources=st.just(tuple(range(n_sources))),
        start_ms=st.integers(0, PATIENCE_MS - 200),
        # The largest gap between two bursts is shorter than the time for which a feeder is awaited.
        period_ms=st.integers(0, 150),
        burst=st.integers(1, 10),
        gap_ms=st.sampled_from((0, 0, 1, 20)),
        pause_at=st.integers(0, N_MEPS),
        pause_ms=st.sampled_from((0, 0, PATIENCE_MS // 4)),
        # Not the last MEP: no fragment overtakes it.
        overtaken=st.frozensets(st.integers(0, N_MEPS - 2), max_size=5),
    ).map(_as_overtaking_allows)


def _as_overtaking_allows(feeder: Feeder) -> Feeder:
    """A feeder whose overtaken fragments arrive in time: with a larger gap, all of a MEP take too long."""
    return replace(feeder, overtaken=frozenset()) if feeder.gap_ms > 1 else feeder


@given(
    feeders=st.lists(st.integers(1, 3).flatmap(feeders_of), min_size=1, max_size=5),
    slots=st.integers(2, 4),
    meps_per_slot=st.integers(1, 6),
    compute_ms=st.sampled_from((0, 10, 400)),
)
@settings(max_examples=150, deadline=None)
def test_no_mep_is_incomplete_while_no_feeder_is_at_fault(
    feeders: list[Feeder], slots: int, meps_per_slot: int, compute_ms: int
) -> None:
    first = 0
    for feeder in feeders:
        feeder.sources = tuple(first + source for source in feeder.sources)
        first += len(feeder.sources)
    simulation = Simulation(feeders, slots=slots, meps_per_slot=meps_per_slot, compute_ms=compute_ms, n_meps=N_MEPS)
    simulation.run(limit_ms=120_000)
    assert set(simulation.closed.values()) == {CloseReason.COMPLETE}
    assert not simulation.rejected
    assert closes(accounting(simulation.builder.counters, simulation.builder))


def paced(source: int, period_ms: int = 10, n: int = 1) -> Feeder:
    return Feeder(tuple(range(source, source + n)), 0, period_ms, burst=1, gap_ms=0, pause_at=1000, pause_ms=0)


def run_until_closed(simulation: Simulation, n: int, limit_ms: int) -> None:
    while len(simulation.closed) < n:
        assert simulation.now_ms < limit_ms
        simulation.step()


@pytest.mark.parametrize("n_sources", [1, 2])
@pytest.mark.parametrize("slots", [2, 8], ids=["evicted", "timeout"])
def test_an_overtaken_fragment_of_a_feeder_far_behind_is_waited_for(n_sources: int, slots: int) -> None:
    behind = paced(1, n=n_sources)
    behind.start_ms, behind.overtaken = 5 * MEP_TIMEOUT_MS, frozenset({10, 20})
    simulation = Simulation([paced(0), behind], slots=slots, meps_per_slot=12, compute_ms=0, n_meps=N_MEPS)
    simulation.run(limit_ms=60_000)
    assert set(simulation.closed.values()) == {CloseReason.COMPLETE}
    assert not simulation.rejected


def test_a_mep_that_overtook_an_older_one_on_its_way_waits_for_a_feeder_as_long_as_any_other() -> None:
    first, behind = paced(0), paced(1)
    first.overtaken = frozenset({9})
    # It comes to MEP 10 later than PATIENCE_MS after the last fragment, and delivers all the time.
    behind.start_ms, behind.period_ms = PATIENCE_MS - 500, 150
    simulation = Simulation([first, behind], slots=4, meps_per_slot=12, compute_ms=0, n_meps=N_MEPS)
    simulation.run(limit_ms=60_000)
    assert set(simulation.closed.values()) == {CloseReason.COMPLETE}


def test_an_overtaken_fragment_of_a_mep_that_was_opened_ahead_of_an_older_one_is_waited_for() -> None:
    first, behind = paced(0), paced(1)
    first.overtaken, behind.overtaken = frozenset({9}), frozenset({10})
    behind.start_ms = 5 * MEP_TIMEOUT_MS
    simulation = Simulation([first, behind], slots=2, meps_per_slot=12, compute_ms=0, n_meps=N_MEPS)
    simulation.run(limit_ms=60_000)
    assert set(simulation.closed.values()) == {CloseReason.COMPLETE}


def test_after_its_timeout_a_stopped_feeder_costs_only_the_mep_timeout() -> None:
    stops = paced(2)
    simulation = Simulation([paced(0), stops], slots=3, meps_per_slot=4, compute_ms=0, n_meps=200)
    run_until_closed(simulation, 5, 1000)
    stops.start_ms = 10**9
    begin_ms, complete = simulation.now_ms, len(simulation.closed)
    run_until_closed(simulation, complete + 1, 10_000)
    assert PATIENCE_MS <= simulation.now_ms - begin_ms <= PATIENCE_MS + 5 * MEP_TIMEOUT_MS
    begin_ms, so_far = simulation.now_ms, len(simulation.closed)
    run_until_closed(simulation, so_far + 20, 10_000)
    assert simulation.now_ms - begin_ms <= 5 * MEP_TIMEOUT_MS + 20 * MEP_TIMEOUT_MS // 8
    assert CloseReason.COMPLETE not in list(simulation.closed.values())[so_far:]
    # It is awaited again as soon as it delivers.
    stops.next_mep, stops.start_ms = max(simulation.closed) + 1, 0
    stops.unsent.clear()
    stops.unacknowledged.clear()
    simulation.run(limit_ms=60_000)
    assert list(simulation.closed.values()).count(CloseReason.COMPLETE) > 100


def test_a_silent_source_of_a_delivering_feeder_costs_only_the_mep_timeout() -> None:
    feeder = paced(0, n=2)
    simulation = Simulation([feeder, paced(2)], slots=3, meps_per_slot=4, compute_ms=0, n_meps=60)
    run_until_closed(simulation, 5, 1000)
    feeder.sources = feeder.sources[:1]
    simulation.run(limit_ms=60 * MEP_TIMEOUT_MS)
    incomplete = {mep for mep, reason in simulation.closed.items() if reason is not CloseReason.COMPLETE}
    assert {*range(10, 60)} <= incomplete
    assert all(simulation.closed[mep] is not CloseReason.OVERTAKEN for mep in incomplete)


def test_a_lost_fragment_does_not_wait_for_the_feeder_timeout() -> None:
    feeder = paced(0, n=2)
    simulation = Simulation([feeder, paced(2)], slots=3, meps_per_slot=4, compute_ms=0, n_meps=30)
    run_until_closed(simulation, 5, 1000)
    while not feeder.unsent:
        feeder.unsent += [(feeder.next_mep, source) for source in feeder.sources]
        feeder.unacknowledged.add(feeder.next_mep)
        feeder.next_mep += 1
    lost, _ = feeder.unsent.pop()
    simulation.run(limit_ms=PATIENCE_MS)
    assert [mep for mep, reason in simulation.closed.items() if reason is CloseReason.OVERTAKEN] == [lost]


def test_a_feeder_that_left_costs_only_the_mep_timeout() -> None:
    simulation = Simulation([paced(0), paced(1)], slots=3, meps_per_slot=4, compute_ms=0, n_meps=30)
    run_until_closed(simulation, 5, 1000)
    simulation.feeders[1].start_ms = 10**9
    simulation.builder.handle(simulation.now_ms * MS, AwaitFeeders((AwaitedFeeder((0,), None),)))
    begin_ms = simulation.now_ms
    simulation.run(limit_ms=60_000)
    assert simulation.now_ms - begin_ms < PATIENCE_MS


def test_a_feeder_that_has_announced_its_last_mep_is_not_awaited_for_later_ones() -> None:
    simulation = Simulation([paced(0), paced(1)], slots=3, meps_per_slot=4, compute_ms=0, n_meps=30)
    ended = simulation.feeders[1]
    simulation.builder.handle(0, AwaitFeeders((AwaitedFeeder((0,), None), AwaitedFeeder((1,), 9))))
    run_until_closed(simulation, 10, 1000)
    ended.start_ms, ended.unsent = 10**9, deque()
    begin_ms = simulation.now_ms
    simulation.run(limit_ms=60_000)
    assert simulation.now_ms - begin_ms < PATIENCE_MS
    assert all(simulation.closed[mep] is CloseReason.COMPLETE for mep in range(10))


def test_a_mep_far_ahead_of_all_others_does_not_hold_its_slot_while_feeders_deliver() -> None:
    simulation = Simulation([paced(0), paced(1)], slots=3, meps_per_slot=4, compute_ms=0, n_meps=1000)
    run_until_closed(simulation, 5, 1000)
    simulation.builder.counters.fragments_received += 1
    simulation.builder.handle(simulation.now_ms * MS, FragmentArrived(RUN, 0, 3000, 20, 12000, EVENTS))
    begin_ms = simulation.now_ms
    while 3000 not in simulation.closed:
        assert simulation.now_ms < begin_ms + 2 * PATIENCE_MS
        simulation.step()
    assert simulation.closed.pop(3000) is CloseReason.TIMEOUT
    assert set(simulation.closed.values()) == {CloseReason.COMPLETE}


def test_a_mep_that_every_feeder_sends_again_waits_for_all_of_them() -> None:
    simulation = Simulation([paced(0), paced(1)], slots=3, meps_per_slot=4, compute_ms=0, n_meps=100)
    first, second = simulation.feeders
    # The whole MEP was lost: both feeders are past it, and send it again one second apart.
    for feeder in (first, second):
        feeder.unacknowledged.add(0)
        feeder.next_mep = 1
    run_until_closed(simulation, 20, 1000)
    for feeder, wait_ms in ((first, 0), (second, 1000)):
        begin_ms = simulation.now_ms
        while simulation.now_ms < begin_ms + wait_ms:
            simulation.step()
        feeder.unsent.append((0, feeder.sources[0]))
    simulation.run(limit_ms=60_000)
    assert simulation.closed[0] is CloseReason.COMPLETE
