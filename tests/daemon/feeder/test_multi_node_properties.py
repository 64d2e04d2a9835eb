"""Feeders, credits, journals and two nodes that may be killed: at the end every MEP is written exactly once."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from hltnode.daemon.common.mep_ranges import MepRanges, as_ranges
from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import (
    AcknowledgedBelow,
    BuilderLimits,
    Effect,
    FragmentArrived,
    GrantCredit,
    Reject,
    RevokeMeps,
    SealSlot,
    SlotAdvanced,
    SlotFreed,
    StartRun,
    Tick,
)
from hltnode.daemon.feeder.assignment import choose_node
from hltnode.daemon.feeder.send_window import RETRY_NS, SendWindow
from hltnode.daemon.monitoring.counters import Counters
from hltnode.protocol.transport.feeder_messages import Nack

EVENTS = 4
SOURCES = (1, 2, 3)
MEPS = 12


@dataclass
class ModelNode:
    """A node without sockets: its builder dies with it, its journal (what is written) stays."""

    written: MepRanges = field(default_factory=MepRanges)
    written_list: list[int] = field(default_factory=list)
    builder: EventBuilder | None = None
    sealed: list[int] = field(default_factory=list)

    def start(self, floor: int) -> list[Effect]:
        limits = SlotLimits(input_bytes=3 * 512, events=3 * EVENTS, meps=8, fragments=64, mep_bytes=512)
        self.builder = EventBuilder(
            SlotPool(2, limits),
            BuilderLimits(
                mep_timeout_ns=10**9, overtaken_ns=10**9, evict_ns=10**9, flush_deadline_ns=5, closed_ring=64
            ),
            Counters(),
        )
        self.sealed = []
        return self.builder.handle(0, StartRun(1, SOURCES, floor, EVENTS, tuple(self.written.ranges())))


class DistributionMachine(RuleBasedStateMachine):
    """One feeder with a window per node; messages arrive at once, but steps of all parts mix at random."""

    @initialize()
    def begin(self) -> None:
        self.now = 0
        self.next_mep = 0
        self.last = -1
        self.nodes = [ModelNode(), ModelNode()]
        self.windows = [SendWindow(), SendWindow()]
        self.limits_sent = [0, 0]
        for node in range(2):
            self.carry_out(node, self.nodes[node].start(0))

    def floor(self) -> int:
        return min((w.first_unacknowledged for w in self.windows if w.unacknowledged), default=self.next_mep)

    def carry_out(self, node: int, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case GrantCredit(_run, meps):
                    self.windows[node].credit(meps)
                case SealSlot(batch):
                    self.nodes[node].sealed.append(batch.slot)
                case Reject(_run, reason, source, mep, resend):
                    self.refused(node, Nack(1, source, mep, reason, resend))
                case _:
                    pass

    def refused(self, node: int, nack: Nack) -> None:
        window = self.windows[node]
        window.refuse(0, nack)
        window.retry(RETRY_NS)
        if nack.mep in self.nodes[node].written:
            window.acknowledge(nack.mep, nack.mep)

    @rule()
    def the_supervisor_assigns_a_mep(self) -> None:
        if self.next_mep == MEPS:
            return
        alive = [w.room if n.builder else 0 for n, w in zip(self.nodes, self.windows, strict=True)]
        node = choose_node(alive, self.last)
        if node is not None:
            mep = self.next_mep
            self.windows[node].add(mep, {source: b"%d %d" % (mep, source) for source in SOURCES})
            self.next_mep += 1
            self.last = node

    @rule(node=st.integers(0, 1), n=st.integers(1, 8))
    def frames_arrive(self, node: int, n: int) -> None:
        builder = self.nodes[node].builder
        for _ in range(n):
            if builder is None or (frame := self.windows[node].next_frame()) is None:
                return
            mep, source = map(int, frame.split())
            builder.counters.fragments_received += 1
            self.carry_out(node, builder.handle(self.now, FragmentArrived(1, source, mep, 100, mep * EVENTS, EVENTS)))

    @rule(node=st.integers(0, 1))
    def time_passes(self, node: int) -> None:
        self.now += 6
        builder = self.nodes[node].builder
        if builder is not None:
            self.carry_out(node, builder.handle(self.now, AcknowledgedBelow(self.floor())))
            self.carry_out(node, builder.handle(self.now, Tick()))

    @rule(node=st.integers(0, 1), acknowledgement_is_lost=st.booleans())
    def a_batch_is_written(self, node: int, acknowledgement_is_lost: bool) -> None:
        model = self.nodes[node]
        if model.builder is None or not model.sealed:
            return
        slot = model.builder.pool.slots[model.sealed.pop(0)]
        meps = [mep.mep for mep in slot.meps]
        for mep in meps:
            model.written.add(mep)
            model.written_list.append(mep)
        if acknowledgement_is_lost:
            self.kill(node)
            return
        self.carry_out(node, model.builder.handle(self.now, SlotAdvanced(slot.index, SlotState.DONE)))
        self.carry_out(node, model.builder.handle(self.now, SlotFreed(slot.index)))
        for mep in meps:
            self.windows[node].acknowledge(mep, mep)

    @rule(node=st.integers(0, 1))
    def kill(self, node: int) -> None:
        self.nodes[node].builder = None
        self.windows[node].credit(0)

    @rule(node=st.integers(0, 1))
    def restart(self, node: int) -> None:
        model, window = self.nodes[node], self.windows[node]
        if model.builder is not None:
            return
        effects = model.start(self.floor())
        window.restart()
        self.revoke_events(node)
        for first, last in model.written.ranges():
            window.acknowledge(first, last)
        self.carry_out(node, effects)

    def revoke_events(self, node: int) -> None:
        model, window = self.nodes[node], self.windows[node]
        assert model.builder is not None
        self.carry_out(node, model.builder.handle(self.now, RevokeMeps(tuple(as_ranges(window.revoked)))))
        for mep in window.revoked:
            model.written.discard(mep)
        model.written_list = [mep for mep in model.written_list if mep not in window.revoked]
        window.revoked.clear()

    @rule(node=st.integers(0, 1))
    def a_dead_node_loses_its_meps(self, node: int) -> None:
        other = 1 - node
        if self.nodes[node].builder is not None or self.nodes[other].builder is None:
            return
        for mep in self.windows[node].meps():
            self.windows[other].add(mep, self.windows[node].revoke(mep))

    @invariant()
    def every_fragment_and_mep_is_in_one_class(self) -> None:
        for model in getattr(self, "nodes", []):
            if model.builder is not None:
                accounts = accounting(model.builder.counters, model.builder)
                assert closes(accounts), accounts

    @invariant()
    def credits_are_backed_by_places(self) -> None:
        for model in getattr(self, "nodes", []):
            builder = model.builder
            if builder is not None:
                places = builder.pool.free_places(EVENTS) + builder.pool.filling_places(EVENTS)
                assert 0 <= builder.window.outstanding <= places

    def teardown(self) -> None:
        if not hasattr(self, "nodes"):
            return
        for _ in range(20 * MEPS):
            for node in range(2):
                self.restart(node)
                self.the_supervisor_assigns_a_mep()
                self.frames_arrive(node, 8)
                self.time_passes(node)
                self.a_batch_is_written(node, acknowledgement_is_lost=False)
        assert self.next_mep == MEPS
        assert sum(window.unacknowledged for window in self.windows) == 0
        assert sorted(self.nodes[0].written_list + self.nodes[1].written_list) == list(range(MEPS))


TestDistributionMachine = DistributionMachine.TestCase
TestDistributionMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_histories_of_two_nodes_end_with_every_mep_written_once() -> None:
    run_state_machine_as_test(
        DistributionMachine, settings=settings(max_examples=10_000, stateful_step_count=50, deadline=None)
    )
