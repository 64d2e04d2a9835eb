"""For any input in any order: the identities hold, credits are backed, and slots do not overlap."""

import copy
import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from hltnode.daemon.common.vocabulary import CloseReason, SlotState
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.event_builder import SOON_NS, EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import (
    Abandon,
    AcknowledgedBelow,
    BuilderLimits,
    CloseMep,
    CloseOpen,
    Effect,
    FragmentArrived,
    GrantCredit,
    MepRecord,
    MepsAcknowledged,
    Place,
    Reject,
    RevokeMeps,
    SealSlot,
    SlotAdvanced,
    SlotFreed,
    StartRun,
    Stimulus,
    Tick,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.protocol.errors import RejectReason

EVENTS = 8
MEP_BYTES = 256
SLOT_BYTES = 3 * MEP_BYTES
TIMEOUT = 50
FLUSH = 10
SOURCES = (3, 5, 2048)


class BuilderMachine(RuleBasedStateMachine):
    """Drives the builder with legal and illegal input, and keeps its own accounts."""

    @initialize(slots=st.integers(2, 4), seals_for_idle=st.booleans())
    def start(self, slots: int, seals_for_idle: bool) -> None:
        slot_limits = SlotLimits(input_bytes=SLOT_BYTES, events=3 * EVENTS, meps=8, fragments=100, mep_bytes=MEP_BYTES)
        pool = SlotPool(slots, slot_limits)
        limits = BuilderLimits(
            mep_timeout_ns=TIMEOUT,
            feeder_timeout_ns=4 * TIMEOUT,
            overtaken_ns=15,
            evict_ns=5,
            flush_deadline_ns=FLUSH,
            closed_ring=64,
            seals_for_idle=seals_for_idle,
        )
        self.builder = EventBuilder(pool, limits, Counters())
        # An early seal takes places that back credits: this rule is for datagrams, which have none.
        self.has_credits = not seals_for_idle
        self.now = 0
        self.sealed: list[int] = []
        self.gathered: list[tuple[int, ...]] = []
        self.closed: list[MepRecord] = []
        self.next_mep = 0
        # A forced close or abandon takes places that back credits, until slots are free again.
        self.forced = False
        self.announced = 0
        self.abandoned = False
        self.stimulate(StartRun(1, SOURCES, 0, EVENTS))

    def stimulate(self, stimulus: Stimulus) -> list[Effect]:
        was_open, was_computing = bool(self.builder.open), self.builder.is_computing
        effects = self.builder.handle(self.now, stimulus)
        self.look_before_the_builder_wants_it()
        if isinstance(stimulus, Tick) and not was_open and not was_computing:
            # Half-full slots back each other's credits: one of them must be sealed nevertheless.
            self.forced |= any(isinstance(effect, SealSlot) for effect in effects)
        for effect in effects:
            match effect:
                case SealSlot(batch):
                    slot = self.builder.pool.slots[batch.slot]
                    assert slot.open_meps == 0
                    assert batch.meps == tuple(slot.meps)
                    self.sealed.append(batch.slot)
                case CloseMep(record):
                    assert (record.close_reason is CloseReason.COMPLETE) == (record.missing == ())
                    self.closed.append(record)
                case GrantCredit(_, limit):
                    self.announced = limit
                case _:
                    pass
        self.abandoned |= isinstance(stimulus, Abandon)
        # A hello is answered with the limit at any time, so it is always the announced one.
        assert self.abandoned or self.builder.window.limit == self.announced
        return effects

    def look_before_the_builder_wants_it(self) -> None:
        """A tick now has no effect, unless the builder has requested one for now or soon."""
        builder = self.builder
        if builder.wake_ns > self.now:
            shared = {id(part): part for part in (builder.history, builder.counters, builder.pool.meps)}
            effects = copy.deepcopy(builder, shared).handle(self.now, Tick())
            in_a_hurry = [effect for effect in effects if not isinstance(effect, GrantCredit)]
            assert not in_a_hurry
            assert not effects or builder.wake_ns <= self.now + SOON_NS

    def send(self, fragment: FragmentArrived) -> list[Effect]:
        self.builder.counters.fragments_received += 1
        effects = self.stimulate(fragment)
        assert isinstance(effects[0], Place | Reject)
        return effects

    @rule(sources=st.permutations(SOURCES), missing=st.integers(0, 3), size=st.integers(1, 80))
    def an_orderly_mep_comes_within_its_credit(self, sources: list[int], missing: int, size: int) -> None:
        if self.builder.window.outstanding <= 0:
            return
        for source in sources[: len(sources) - missing]:
            effects = self.send(FragmentArrived(1, source, self.next_mep, size, self.next_mep * EVENTS, EVENTS))
            if self.has_credits and not self.forced:
                assert not isinstance(effects[0], Reject), effects[0]
        self.next_mep += 1
        self.acknowledge_when_the_ring_ends()

    def acknowledge_when_the_ring_ends(self) -> None:
        """The feeders confirm acknowledged MEPs before the ring is full; here they confirm every MEP of that age."""
        if self.next_mep + 31 >= self.builder.floor + 64:
            self.stimulate(AcknowledgedBelow(self.next_mep - 20))

    @rule()
    def every_mep_is_acknowledged(self) -> None:
        self.stimulate(AcknowledgedBelow(min(self.builder.open, default=self.next_mep)))

    @rule(
        run=st.sampled_from((1, 1, 1, 2)),
        source=st.sampled_from((*SOURCES, 9)),
        ahead=st.integers(-30, 30),
        size=st.integers(1, 300),
        events=st.sampled_from((EVENTS, EVENTS, EVENTS - 1, EVENTS + 1)),
    )
    def any_fragment_comes(self, run: int, source: int, ahead: int, size: int, events: int) -> None:
        mep = max(0, self.next_mep + ahead)
        effects = self.send(FragmentArrived(run, source, mep, size, mep * EVENTS, events))
        if isinstance(effects[0], Reject):
            assert effects[0].resend == (effects[0].reason in {RejectReason.NO_CREDIT, RejectReason.REVOKED})
        else:
            self.next_mep = max(self.next_mep, mep + 1)
            self.acknowledge_when_the_ring_ends()

    @rule(step=st.integers(1, 40))
    def time_passes(self, step: int) -> None:
        end = self.now + step
        while self.builder.wake_ns <= end:
            self.now = max(self.now, self.builder.wake_ns)
            self.stimulate(Tick())
            assert self.builder.wake_ns > self.now
        self.now = end
        assert all(self.now - mep.last_ns < TIMEOUT for mep in self.builder.open.values())
        assert all(mep.overtaken_ns is None or self.now - mep.overtaken_ns < 15 for mep in self.builder.open.values())

    @rule()
    def the_pipeline_gives_a_slot_back(self) -> None:
        if self.sealed:
            slot = self.sealed.pop(0)
            self.stimulate(SlotAdvanced(slot, SlotState.DONE))
            self.gathered.append(tuple(mep.mep for mep in self.builder.pool.slots[slot].meps))
            self.stimulate(SlotFreed(slot))

    @rule()
    def a_batch_is_acknowledged(self) -> None:
        if self.gathered:
            self.stimulate(MepsAcknowledged(self.gathered.pop(0)))

    @rule()
    def an_open_mep_is_revoked(self) -> None:
        if self.builder.open:
            mep = min(self.builder.open)
            self.stimulate(RevokeMeps(((mep, mep),)))
            assert mep not in self.builder.open

    @rule()
    def everything_open_is_closed(self) -> None:
        self.stimulate(CloseOpen())
        self.forced = True
        assert not self.builder.open
        assert not self.builder.pool.filling

    @rule()
    def everything_open_is_abandoned(self) -> None:
        self.stimulate(Abandon())
        self.forced = True
        assert not self.builder.open

    @invariant()
    def every_fragment_and_every_mep_is_in_one_class(self) -> None:
        accounts = accounting(self.builder.counters, self.builder)
        assert closes(accounts), accounts
        assert accounts["fragments"]["built"] == sum(mep.n_fragments for mep in self.closed)

    @invariant()
    def fragments_in_a_slot_do_not_overlap_and_stay_inside(self) -> None:
        for slot in self.builder.pool.slots:
            spans = sorted((offset, size) for mep in slot.meps for _, offset, size in mep.fragments)
            for (offset, size), (following, _) in itertools.pairwise(spans):
                assert offset + size <= following
            assert all(offset % 8 == 0 and offset + size <= SLOT_BYTES for offset, size in spans)
            assert 0 <= self.builder.pool.meps.cursor(slot.index) <= slot.committed <= SLOT_BYTES
            assert sum(mep.n_events for mep in slot.meps) == slot.events <= 3 * EVENTS

    @invariant()
    def every_outstanding_credit_has_a_place(self) -> None:
        builder = self.builder
        places = builder.pool.free_slots * builder.pool.empty_places(EVENTS) + builder.pool.filling_places(EVENTS)
        backed = builder.window.outstanding <= places
        assert backed or self.forced or not self.has_credits
        self.forced = not backed

    def teardown(self) -> None:
        if not hasattr(self, "builder"):
            return
        self.stimulate(CloseOpen())
        meps = [mep.mep for mep in self.closed]
        assert len(meps) == len(set(meps))


TestBuilderMachine = BuilderMachine.TestCase
TestBuilderMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_identities_hold_in_ten_thousand_random_histories() -> None:
    run_state_machine_as_test(
        BuilderMachine, settings=settings(max_examples=10_000, stateful_step_count=50, deadline=None)
    )
