"""The conversation with feeders, without sockets: messages in, answers and effects out."""

from typing import Any

import pytest

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import Batch, BuilderLimits, FragmentArrived, SlotAdvanced
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.output.output_stage import RevokeEvents
from hltnode.daemon.readout.acknowledgements import Acknowledgements
from hltnode.daemon.readout.effect_executor import EffectExecutor
from hltnode.daemon.readout.feeder_protocol import FeederProtocol
from hltnode.daemon.readout.feeder_registry import FeederRegistry
from hltnode.protocol.transport.feeder_messages import Ack, Credit, EndOfRun, Error, Goodbye, Hello, Revoked, Welcome
from hltnode.protocol.transport.run_control_messages import RunState
from tests.daemon.readout.connections import RecordedConnections

RUN = 7
EVENTS = 10
MS = 1_000_000
SECOND = 1000 * MS


class Bench:
    """A node's readout without sockets and threads, with a clock that is set by hand. One feeder sends source 1."""

    def __init__(self) -> None:
        self.now = 0
        self.state = RunState.RUNNING
        self.counters = Counters()
        limits = SlotLimits(input_bytes=4096, events=4 * EVENTS, meps=64, fragments=64, mep_bytes=1024)
        times = BuilderLimits(
            mep_timeout_ns=100 * MS,
            overtaken_ns=30 * MS,
            evict_ns=10 * MS,
            flush_deadline_ns=20 * MS,
            closed_ring=64,
        )
        self.builder = EventBuilder(SlotPool(3, limits), times, self.counters)
        self.connections = RecordedConnections()
        self.batches: list[Batch] = []
        self.summaries: list[tuple[dict[str, Any], bool]] = []
        self.revoked: list[RevokeEvents] = []
        registry = FeederRegistry(run=0, feeders=1, sources=None, max_events_per_mep=EVENTS)
        acknowledgements = Acknowledgements()
        executor = EffectExecutor(
            registry, acknowledgements, self.connections, self.counters, self.batches.append, lambda: self.now
        )
        self.carry_out = executor.carry_out
        self.protocol = FeederProtocol(
            self.builder,
            registry,
            acknowledgements,
            self.connections,
            self.counters,
            executor.carry_out,
            lambda: self.state,
            lambda summary, over: self.summaries.append((summary, over)),
            self.revoked.append,
            node="n",
            session="s",
            max_fragment_bytes=1000,
            clock_ns=lambda: self.now,
        )

    def hello(self, *, first_mep: int = 0, run: int = RUN, session: str = "f1", identity: bytes = b"a") -> None:
        self.protocol.message_arrived(identity, Hello("a", session, run, (1,), first_mep, EVENTS, 1000))

    def send_mep(self, mep: int) -> None:
        self.counters.fragments_received += 1
        self.carry_out(self.builder.handle(self.now, FragmentArrived(RUN, 1, mep, 100, mep * EVENTS, EVENTS)))

    def pass_time(self, ns: int) -> None:
        self.now += ns
        self.protocol.tick(self.now)

    def finish_batches(self) -> None:
        for batch in self.batches:
            self.protocol.slot_advanced(SlotAdvanced(batch.slot, SlotState.RUN))
            self.protocol.slot_advanced(SlotAdvanced(batch.slot, SlotState.DONE))
            self.protocol.batch_done(batch)
        self.batches.clear()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_first_hello_starts_the_run_and_is_answered_with_welcome_and_credit(bench: Bench) -> None:
    bench.hello()
    sent = bench.connections.take()
    assert Welcome("n", "s", RUN, 1000) in sent
    assert sent[-1] == Credit(RUN, bench.builder.window.limit)
    assert bench.builder.run == RUN


def test_a_node_that_is_not_running_answers_a_hello_with_goodbye(bench: Bench) -> None:
    bench.state = RunState.READY
    bench.hello()
    assert bench.connections.take() == [Goodbye("node is ready")]
    assert bench.builder.run is None


def test_a_message_of_an_unknown_feeder_is_an_error(bench: Bench) -> None:
    bench.protocol.message_arrived(b"x", EndOfRun(RUN, 3))
    [error] = bench.connections.take()
    assert isinstance(error, Error)
    assert error.reason == "unknown_feeder"


def test_a_second_process_is_refused_while_the_connection_of_the_first_is_there(bench: Bench) -> None:
    bench.hello()
    bench.connections.alive = {b"a"}
    bench.connections.take()
    bench.hello(session="f2", identity=b"b")
    assert [m.reason for m in bench.connections.take() if isinstance(m, Error)] == ["name_taken"]
    bench.connections.alive = set()
    bench.hello(session="f2", identity=b"b")
    assert not [m for m in bench.connections.take() if isinstance(m, Error)]


def test_slots_change_state_only_by_what_the_pipeline_reports_to_the_builder(bench: Bench) -> None:
    bench.hello()
    bench.send_mep(0)
    bench.pass_time(20 * MS)
    [batch] = bench.batches
    slots = bench.builder.pool.slots
    assert slots[batch.slot].state is SlotState.SEALED
    bench.protocol.slot_advanced(SlotAdvanced(batch.slot, SlotState.RUN))
    assert slots[batch.slot].state is SlotState.RUN
    bench.finish_batches()
    assert slots[batch.slot].state is SlotState.FREE
    assert bench.builder.is_idle


def test_a_finished_batch_is_acknowledged_after_the_credits_that_its_slot_gives(bench: Bench) -> None:
    bench.hello()
    bench.send_mep(0)
    bench.pass_time(20 * MS)
    bench.connections.take()
    bench.finish_batches()
    sent = bench.connections.take()
    assert sent[-1] == Ack(RUN, ((0, 0),))
    assert [type(message) for message in sent[:-1]] == [Credit]
    assert bench.counters.meps_acknowledged == 1


def test_a_run_ends_when_its_feeders_have_ended_and_everything_is_acknowledged(bench: Bench) -> None:
    bench.hello()
    bench.send_mep(0)
    bench.protocol.message_arrived(b"a", EndOfRun(RUN, 0))
    bench.pass_time(20 * MS)
    assert not bench.summaries
    bench.finish_batches()
    bench.hello(first_mep=1)
    bench.pass_time(MS)
    [(summary, over)] = bench.summaries
    assert over
    assert summary["accounting_closes"]
    assert "history" not in summary


def test_a_broken_identity_is_counted_and_the_summary_explains_it_with_the_history(bench: Bench) -> None:
    bench.hello()
    bench.send_mep(0)
    bench.pass_time(20 * MS)
    bench.finish_batches()
    bench.counters.fragments_received += 1
    bench.protocol.leave_run()
    [(summary, _)] = bench.summaries
    assert not summary["accounting_closes"]
    assert "MEP 0 is complete" in summary["history"]
    assert bench.counters.accounting_broken == 1
    assert not bench.protocol.check_accounts()
    assert bench.counters.accounting_broken == 2


def test_revoked_meps_are_dropped_and_the_outputs_know_which_are_still_in_slots(bench: Bench) -> None:
    bench.hello()
    bench.send_mep(0)
    bench.pass_time(20 * MS)
    bench.finish_batches()
    bench.send_mep(1)
    bench.connections.take()
    message = Revoked(RUN, ((0, 1),))
    bench.protocol.message_arrived(b"a", message)
    assert bench.revoked == [RevokeEvents(RUN, ((0, 1),), frozenset({1}), (b"a", message))]
    bench.pass_time(20 * MS)
    bench.finish_batches()
    bench.connections.take()
    bench.hello()
    assert not [m for m in bench.connections.take() if isinstance(m, Ack)]
    bench.protocol.events_revoked((b"a", message))
    assert bench.connections.take() == [message]


def test_feeders_that_died_make_room_for_another_run(bench: Bench) -> None:
    bench.hello()
    bench.pass_time(6 * SECOND)
    bench.connections.take()
    bench.hello(run=8, session="f2", identity=b"b")
    assert bench.builder.run == 8
    assert [over for _, over in bench.summaries] == [True]
