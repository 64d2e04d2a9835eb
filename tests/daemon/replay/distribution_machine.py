"""Two nodes, a supervisor and a follower as a state machine: any of them may be killed or cut off at any time.

The supervisor, the follower, their windows and the event builders are the real ones; there are no sockets. Each
connection gets its messages on its own, so that one may know of an acknowledgement that another one has missed.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hltnode.client.feeder import Feeder, FeederIdentity
from hltnode.client.mep import FeedMep
from hltnode.client.send_window import RETRY_NS
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
    MepsAcknowledged,
    Reject,
    ReturnMeps,
    RevokeMeps,
    SealSlot,
    SlotAdvanced,
    SlotFreed,
    StartRun,
    Tick,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.feeder_protocol import HELD_AFTER_NS
from hltnode.daemon.replay.assignment import DONE
from hltnode.daemon.replay.assignment_memory import AssignmentMemory
from hltnode.daemon.replay.follower import FollowedList
from hltnode.daemon.replay.nodes import NodeGroup, Nodes
from hltnode.daemon.replay.supervisor import Supervisor
from hltnode.protocol.transport.control_messages import ControlMessage
from hltnode.protocol.transport.feeder_messages import (
    Ack,
    Credit,
    Error,
    Goodbye,
    Nack,
    Returned,
    Revoked,
    Welcome,
    split_held,
)
from hltnode.protocol.transport.frame_header import decode_header
from hltnode.protocol.transport.mep_ranges import MepRanges
from hltnode.protocol.transport.refusals import MessageRefusal
from tests.client.sending import send_next
from tests.client.test_feeder import RecordedConnection
from tests.daemon.fakes import RUN, synthetic_meps
from tests.daemon.manual_clock import ManualClock

EVENTS = 4
# Two connections of the supervising process, and one of the following process.
SHARES = ((1,), (2,), (3,))
SOURCES = (1, 2, 3)
MEPS = 12
FED: list[FeedMep] = list(synthetic_meps(MEPS, sources=SOURCES, events=EVENTS))
NODES = range(2)


@dataclass
class ModelNode:
    """A node without sockets: a kill deletes its builder; its journal (the written MEPs) stays."""

    session: int = 0
    written: MepRanges = field(default_factory=MepRanges)
    written_list: list[int] = field(default_factory=list)
    builder: EventBuilder | None = None
    sealed: list[int] = field(default_factory=list)
    confirmed: list[int] = field(default_factory=lambda: [0, 0, 0])
    """The confirmations of each connection."""
    floor: int = 0
    revoked_in_slots: set[int] = field(default_factory=set)
    """Revoked MEPs that are dropped when they come out of their slots."""
    in_flight: list[FragmentArrived] = field(default_factory=list)
    """Fragments that have left a feeder, and may come at any time."""

    def start(self) -> list[Effect]:
        limits = SlotLimits(input_bytes=3 * 512, events=3 * EVENTS, meps=8, fragments=64, mep_bytes=512)
        self.session += 1
        self.builder = EventBuilder(
            SlotPool(2, limits),
            BuilderLimits(
                mep_timeout_ns=10**15,
                feeder_timeout_ns=10**15,
                overtaken_ns=10**15,
                evict_ns=10**15,
                flush_deadline_ns=5,
                closed_ring=64,
            ),
            Counters(),
        )
        self.sealed = []
        # Confirmed MEPs are not in the journal.
        self.confirmed, self.floor = [0, 0, 0], 0
        self.revoked_in_slots = set()
        self.in_flight = []
        return self.builder.handle(0, StartRun(RUN, SOURCES, self.floor, EVENTS, tuple(self.written.ranges())))


class DistributionMachine(RuleBasedStateMachine):
    """Steps of all parts mix at random; a message arrives at once or, if a rule drops it, never."""

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        self.outdated = False
        self.folder = tempfile.TemporaryDirectory()
        self.nodes = [ModelNode() for _ in NODES]
        self.feeders = [[self.make_feeder(name, sources) for name, sources in enumerate(SHARES)] for _ in NODES]
        self.memory = self.open_memory()
        self.the_supervisor_starts()
        self.the_follower_starts()
        for node in NODES:
            self.restart(node)

    def open_memory(self) -> AssignmentMemory:
        return AssignmentMemory(Path(self.folder.name, "memory"), run=RUN, nodes=["0", "1"])

    def the_supervisor_starts(self) -> None:
        """Restart: only the stored memory remains."""
        self.memory.close()
        self.memory = self.open_memory()
        for node in NODES:
            self.feeders[node][:2] = [self.make_feeder(name, SHARES[name]) for name in range(2)]
        self.leading = Nodes([NodeGroup(str(node), self.feeders[node][:2]) for node in NODES], self.clock)
        self.supervisor = Supervisor(self.leading, self.memory)

    def the_follower_starts(self) -> None:
        for node in NODES:
            self.feeders[node][2] = self.make_feeder(2, SHARES[2])
        self.following = Nodes([NodeGroup(str(node), self.feeders[node][2:]) for node in NODES], self.clock)
        self.followed = FollowedList(self.following)

    def make_feeder(self, name: int, sources: Sequence[int]) -> Feeder:
        identity = FeederIdentity(
            name=f"f{name}", run=RUN, sources=tuple(sources), events_per_mep=EVENTS, max_fragment_bytes=60_000
        )
        return Feeder(RecordedConnection(), identity, clock=self.clock)

    def tell(self, node: int, *messages: ControlMessage) -> None:
        for feeder in self.feeders[node]:
            if feeder.is_connected:
                for message in messages:
                    feeder.take(message)

    def carry_out(self, node: int, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case GrantCredit(run, meps):
                    self.tell(node, Credit(run, meps))
                case SealSlot(batch):
                    self.nodes[node].sealed.append(batch.slot)
                case Reject(run, reason, source, mep, resend):
                    owner = self.feeders[node][SOURCES.index(source)]
                    if owner.is_connected:
                        owner.take(Nack(run, source, mep, reason, resend))
                        if mep in self.nodes[node].written:
                            owner.take(Ack(run, ((mep, mep),)))
                case _:
                    pass

    @rule()
    def the_supervisor_assigns_a_mep(self) -> None:
        if self.leading.next_mep < MEPS:
            mep = FED[self.leading.next_mep]
            node = self.supervisor.node_for(mep.mep)
            if node is not None:
                self.leading.next_mep = mep.mep + 1
                if node != DONE:
                    self.leading.keep(mep, node)

    @rule()
    def the_follower_asks(self) -> None:
        self.followed.take(self.supervisor.answer_to(self.followed.request()))

    @rule()
    def the_follower_produces_a_mep(self) -> None:
        if self.following.next_mep < MEPS:
            mep = FED[self.following.next_mep]
            node = self.followed.node_for(mep.mep)
            if node is not None:
                self.following.next_mep = mep.mep + 1
                if node != DONE:
                    self.following.keep(mep, node)

    @rule(meps=st.integers(1, 4))
    def both_processes_feed(self, meps: int) -> None:
        for _ in range(meps):
            self.the_supervisor_assigns_a_mep()
        self.the_follower_asks()
        for _ in range(meps):
            self.the_follower_produces_a_mep()

    @rule(node=st.sampled_from(NODES), connection=st.sampled_from(range(3)), n=st.integers(1, 8), late=st.booleans())
    def frames_arrive(self, node: int, connection: int, n: int, late: bool = False) -> None:
        feeder = self.feeders[node][connection]
        for _ in range(n):
            if self.nodes[node].builder is None or (frame := send_next(feeder.window, self.clock.now_ns)) is None:
                return
            header = decode_header(memoryview(frame), max_bytes=len(frame))
            mep, source = header.mep_id, header.source_id
            fragment = FragmentArrived(RUN, source, mep, 100, mep * EVENTS, EVENTS)
            if late:
                self.nodes[node].in_flight.append(fragment)
            else:
                self.frame_arrives(node, fragment)

    def frame_arrives(self, node: int, fragment: FragmentArrived) -> None:
        builder = self.nodes[node].builder
        assert builder is not None
        builder.counters.fragments_received += 1
        self.carry_out(node, builder.handle(self.clock.now_ns, fragment))

    @rule(node=st.sampled_from(NODES), n=st.integers(1, 30))
    def late_frames_arrive(self, node: int, n: int = 1000) -> None:
        late = self.nodes[node].in_flight
        if self.nodes[node].builder is not None:
            for fragment in late[:n]:
                self.frame_arrives(node, fragment)
            del late[:n]

    @rule(seconds=st.sampled_from((0.06, 1.0, 10.0)))
    def time_passes(self, seconds: float) -> None:
        self.clock.now_ns += max(round(seconds * 1e9), RETRY_NS)
        for node, model in enumerate(self.nodes):
            if model.builder is not None:
                self.carry_out(node, model.builder.handle(self.clock.now_ns, Tick()))
            for feeder in self.feeders[node]:
                feeder.window.retry(self.clock.now_ns)
                if model.builder is None:
                    feeder.hello()

    @rule()
    def the_supervisor_looks(self) -> None:
        self.supervisor.note_acknowledged()
        self.supervisor.reassign_lost()

    @rule(node=st.sampled_from(NODES), arrives=st.lists(st.booleans(), min_size=3, max_size=3))
    def a_batch_is_written(self, node: int, arrives: list[bool]) -> None:
        """The acknowledgement arrives at some of the connections."""
        model = self.nodes[node]
        if model.builder is None or not model.sealed:
            return
        slot = model.builder.pool.slots[model.sealed.pop(0)]
        meps = [mep.mep for mep in slot.meps if mep.mep not in model.revoked_in_slots]
        model.revoked_in_slots.difference_update(mep.mep for mep in slot.meps)
        for mep in meps:
            model.written.add(mep)
            model.written_list.append(mep)
        self.carry_out(node, model.builder.handle(self.clock.now_ns, SlotAdvanced(slot.index, SlotState.DONE)))
        built = tuple(mep.mep for mep in slot.meps)
        self.carry_out(node, model.builder.handle(self.clock.now_ns, SlotFreed(slot.index)))
        self.carry_out(node, model.builder.handle(self.clock.now_ns, MepsAcknowledged(built)))
        for feeder, is_told in zip(self.feeders[node], arrives, strict=True):
            if is_told and feeder.is_connected:
                feeder.take(Ack(RUN, tuple((mep, mep) for mep in meps)))

    @rule(node=st.sampled_from(NODES), connection=st.sampled_from(range(3)))
    def a_feeder_says_hello(self, node: int, connection: int) -> None:
        feeder, model = self.feeders[node][connection], self.nodes[node]
        if model.builder is None:
            return
        hello = feeder.hello()
        model.confirmed[connection] = hello.first_mep
        if min(model.confirmed) > model.floor:
            model.floor = min(model.confirmed)
            self.carry_out(node, model.builder.handle(self.clock.now_ns, AcknowledgedBelow(model.floor)))
        done = MepRanges(model.written.ranges())
        if model.floor:
            done.add(0, model.floor - 1)
        feeder.take(Ack(RUN, tuple(done.ranges(hello.first_mep))))
        held = model.builder.held(hello.sources, self.clock.now_ns - HELD_AFTER_NS)
        for message in split_held(str(model.session), RUN, held):
            feeder.take(message)
        feeder.take(Welcome("n", str(model.session), RUN, 60_000, 1))
        feeder.take(Credit(RUN, model.builder.window.limit))

    @rule(node=st.sampled_from(NODES))
    def kill(self, node: int) -> None:
        self.nodes[node].builder = None
        self.nodes[node].in_flight = []
        self.cut(node)

    @rule(node=st.sampled_from(NODES), arrives=st.lists(st.booleans(), min_size=3, max_size=3), killed=st.booleans())
    def a_node_is_lost_for_long_after_a_batch(self, node: int, arrives: list[bool], killed: bool) -> None:
        for connection in range(3):
            self.frames_arrive(node, connection, 8)
        self.time_passes(1.0)
        self.a_batch_is_written(node, arrives)
        if killed:
            self.kill(node)
        else:
            self.cut(node)
        self.the_supervisor_looks()
        self.time_passes(10.0)
        self.the_supervisor_looks()

    @rule(node=st.sampled_from(NODES))
    def cut(self, node: int) -> None:
        """No connection: the node continues with its MEPs."""
        for feeder in self.feeders[node]:
            feeder.take(Goodbye("lost"))

    @rule(node=st.sampled_from(NODES))
    def restart(self, node: int) -> None:
        """The node is there again, after a kill as another session."""
        model = self.nodes[node]
        effects = [] if model.builder is not None else model.start()
        for connection in range(3):
            if not self.feeders[node][connection].is_connected:
                self.a_feeder_says_hello(node, connection)
        self.carry_out(node, effects)

    @rule(follower=st.booleans())
    def a_feeder_process_is_killed_and_started(self, follower: bool) -> None:
        if follower:
            self.the_follower_starts()
        else:
            self.the_supervisor_starts()

    @rule(node=st.sampled_from(NODES), confirmed=st.booleans())
    def meps_are_returned(self, node: int, confirmed: bool) -> None:
        builder, leader = self.nodes[node].builder, self.feeders[node][0]
        if builder is None or not leader.is_connected:
            return
        ranges = tuple(leader.window.to_return.ranges())
        self.carry_out(node, builder.handle(self.clock.now_ns, ReturnMeps(ranges)))
        if confirmed:
            leader.take(Returned(RUN, ranges))

    @rule(node=st.sampled_from(NODES), confirmed=st.booleans())
    def a_revocation_arrives(self, node: int, confirmed: bool) -> None:
        model, leader = self.nodes[node], self.feeders[node][0]
        if model.builder is None or not leader.is_connected or not leader.window.to_revoke:
            return
        ranges = leader.window.to_revoke.ranges()
        if ranges[0][0] < max(model.floor, model.confirmed[0]):
            assert self.outdated, "the node refuses it"
            leader.take(Error(MessageRefusal.NOT_PERMITTED, "confirmed"))
            return
        meps = {mep for first, last in ranges for mep in range(first, last + 1)}
        model.revoked_in_slots |= model.builder.unacknowledged_meps() & meps
        self.carry_out(node, model.builder.handle(self.clock.now_ns, RevokeMeps(tuple(ranges))))
        for first, last in ranges:
            model.written.discard(first, last)
        model.written_list = [mep for mep in model.written_list if mep not in meps]
        if confirmed:
            leader.take(Revoked(RUN, tuple(ranges)))

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
                pool = builder.pool
                places = pool.free_slots * pool.empty_places(EVENTS) + pool.filling_places(EVENTS)
                assert builder.window.outstanding >= 0
                assert builder.window.outstanding <= places or builder.is_computing

    def teardown(self) -> None:
        if not hasattr(self, "followed"):
            return
        try:
            self.work()
        finally:
            self.close()
        assert sorted(self.nodes[0].written_list + self.nodes[1].written_list) == list(range(MEPS))

    def close(self) -> None:
        self.memory.close()
        self.folder.cleanup()

    def work(self, rounds: int = 20 * MEPS) -> None:
        """No more faults; the run ends if there are enough rounds."""
        for _ in range(rounds):
            self.the_supervisor_assigns_a_mep()
            self.the_follower_asks()
            self.the_follower_produces_a_mep()
            for node in NODES:
                self.restart(node)
                self.a_revocation_arrives(node, confirmed=True)
                self.meps_are_returned(node, confirmed=True)
                self.late_frames_arrive(node)
                for connection in range(3):
                    self.a_feeder_says_hello(node, connection)
                    self.frames_arrive(node, connection, 8)
                self.a_batch_is_written(node, [True] * 3)
            self.the_supervisor_looks()
            self.time_passes(1.0)
        if rounds < MEPS or self.outdated:
            return
        assert self.leading.next_mep == self.following.next_mep == MEPS
        assert self.leading.unacknowledged == self.following.unacknowledged == 0
        assert not self.leading.retained
        assert not self.following.retained
        for model in self.nodes:
            assert model.builder is not None
            assert model.builder.open == {}, "incomplete"
        assert not self.memory.assigned()
