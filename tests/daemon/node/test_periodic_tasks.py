"""The wake-ups of a node without polling, with a clock and an alarm that the test sets."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import zmq.asyncio

from hltnode.daemon.common.vocabulary import CloseReason, DeadTimeReason
from hltnode.daemon.event_building.event_builder import SOON_NS
from hltnode.daemon.event_building.stimuli_and_effects import FragmentArrived
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.monitoring.status_page.rates import RateWindow
from hltnode.daemon.node.periodic_tasks import HEARTBEAT_NS, PeriodicTasks
from hltnode.daemon.output.output_queue import OutputQueue
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.readout.run_feeders import SILENT_NS
from hltnode.daemon.readout.silent_sources import SilentSourceMonitor
from hltnode.protocol.transport.feeder_messages import Credit
from tests.daemon.fakes import make_config, make_feeder, running_node
from tests.daemon.readout.bench import EVENTS, MS, RUN, SECOND, Bench

US = 1_000
FLUSH, TIMEOUT, OVERTAKEN = 20 * MS, 100 * MS, 30 * MS


class ManualAlarm:
    """Rings when the node comes to its time."""

    def __init__(self, node: "Node", ring: Callable[[], None]) -> None:
        self._node = node
        self.ring = ring
        self.due_ns: int | None = None
        self.settings = 0

    def set(self, delay_ns: int) -> None:
        self.due_ns = self._node.bench.now + max(1, delay_ns)
        self.settings += 1

    def close(self) -> None:
        self.due_ns = None


class Node:
    """The readout of a node, its periodic tasks, and nothing that polls."""

    def __init__(self, feeders: int = 2) -> None:
        self.bench = bench = Bench(feeders=feeders)
        self.clock = ReadingClock(lambda: bench.now)
        self.health = Health(
            loop_tick_ns=0, pipeline_tick_ns=0, feeders_expected=feeders, configured=True, warmed_up=True
        )
        self.pings: list[int] = []
        self.notifier = SimpleNamespace(watchdog_interval=None, watchdog=lambda: self.pings.append(bench.now))
        self.failures: list[str] = []
        self.inbox: list[Callable[[], None]] = []
        """Input that arrived while the process was stopped."""
        self.wake_ups = 0
        self.alarm: ManualAlarm
        # Time of the bench is that of the clock by which deadlines are judged.
        bench.protocol._clock_ns = bench.control._clock_ns = self.clock.current_ns
        pipeline = SimpleNamespace(tick_ns=0, advanced_ns=0)
        self.store = SimpleNamespace(problem=None)
        self.tasks = PeriodicTasks(
            [SimpleNamespace(read=self.read)],
            bench.control,
            lambda: bench.state,
            bench.counters,
            self.health,
            cast(Any, pipeline),
            cast(Any, self.store),
            cast(Any, SimpleNamespace(problem=lambda _now_ns: None)),
            OutputQueue(1 << 20),
            SilentSourceMonitor(bench.builder, bench.counters, silent_ns=5 * SECOND, clock_ns=lambda: bench.now),
            cast(Any, self.notifier),
            self.failures.append,
            self.clock,
            RateWindow(bench.counters),
            alarm=self.make_alarm,
        )
        # The bench itself counts the computed events.
        self.pipeline = pipeline
        self.tasks.start(cast(asyncio.AbstractEventLoop, None))

    def make_alarm(self, _loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> ManualAlarm:
        self.alarm = ManualAlarm(self, ring)
        return self.alarm

    def read(self) -> bool:
        """Read all input of the sockets."""
        self.clock.read()
        inbox, self.inbox = self.inbox, []
        for arrives in inbox:
            arrives()
        return True

    def ring(self) -> None:
        self.wake_ups += 1
        self.pipeline.tick_ns = self.bench.now
        self.alarm.ring()

    def sleep_until(self, end_ns: int) -> None:
        """Let time pass; the alarm is all that wakes the node."""
        bench = self.bench
        while self.alarm.due_ns is not None and self.alarm.due_ns <= end_ns:
            bench.now, self.alarm.due_ns = self.alarm.due_ns, None
            self.ring()
        bench.now = end_ns

    def arrive(self, do: Callable[[], object]) -> None:
        """Something comes on a socket, and wakes the node."""
        self.clock.read()
        do()

    def fragment(self, mep: int, source: int) -> None:
        def comes() -> None:
            self.bench.counters.fragments_received += 1
            arrived = FragmentArrived(RUN, source, mep, 100, mep * EVENTS, EVENTS)
            self.bench.carry_out(self.bench.builder.handle(self.clock.now_ns, arrived))

        self.arrive(comes)

    def hello(self, *names: str) -> None:
        for name in names:
            self.arrive(partial(self.bench.hello, name))

    @property
    def sealed(self) -> list[list[int]]:
        return [[mep.mep for mep in batch.meps] for batch in self.bench.batches]

    @property
    def closed(self) -> dict[str, int]:
        return {str(reason): n for reason, n in self.bench.counters.meps_closed.items() if n}


@pytest.fixture
def node() -> Iterator[Node]:
    node = Node()
    node.bench.now += 10 * SECOND
    node.sleep_until(node.bench.now + SECOND)
    node.hello("a", "b")
    node.sleep_until(node.bench.now + SOON_NS)
    yield node
    assert not node.failures
    node.tasks.stop()
    assert node.alarm.due_ns is None


def test_a_node_without_data_wakes_up_twice_a_second(node: Node) -> None:
    node.sleep_until(node.bench.now + 2 * SECOND)
    before = node.wake_ups
    node.sleep_until(node.bench.now + SECOND)
    assert node.wake_ups - before <= SECOND // HEARTBEAT_NS + 1


def test_a_slot_is_sealed_at_its_deadline_to_the_microsecond(node: Node) -> None:
    begin = node.bench.now + 3 * US
    node.sleep_until(begin)
    node.fragment(0, 1)
    node.fragment(0, 2)
    node.sleep_until(begin + FLUSH - 1)
    assert node.sealed == []
    node.sleep_until(begin + FLUSH)
    assert node.sealed == [[0]]


def test_a_mep_that_lacks_a_lost_fragment_is_closed_at_its_timeout(node: Node) -> None:
    node.bench.leave("b")
    begin = node.bench.now
    node.fragment(0, 1)
    node.sleep_until(begin + TIMEOUT - 1)
    assert node.closed == {}
    node.sleep_until(begin + TIMEOUT)
    assert node.closed == {str(CloseReason.TIMEOUT): 1}
    # Its slot was overdue, and had to wait for it.
    assert node.sealed == [[0]]


def test_a_mep_that_was_overtaken_is_closed_soon_after_its_time(node: Node) -> None:
    begin = node.bench.now
    node.fragment(0, 1)
    node.fragment(1, 1)
    node.fragment(1, 2)
    node.sleep_until(begin + OVERTAKEN - 1)
    assert node.closed == {str(CloseReason.COMPLETE): 1}
    node.sleep_until(begin + OVERTAKEN * 5 // 4 + SOON_NS)
    assert node.closed == {str(CloseReason.COMPLETE): 1, str(CloseReason.OVERTAKEN): 1}


def test_a_feeder_that_is_silent_is_no_longer_connected_when_its_time_is_up(node: Node) -> None:
    last = node.bench.now - SOON_NS
    node.sleep_until(last + SILENT_NS)
    assert node.health.feeders_connected == 2
    node.sleep_until(last + SILENT_NS + 1)
    assert node.health.feeders_connected == 0


def test_a_hello_is_seen_by_health_without_the_heartbeat(node: Node) -> None:
    node.sleep_until(node.bench.now + SILENT_NS + SECOND)
    assert node.health.feeders_connected == 0
    node.hello("a")
    node.sleep_until(node.bench.now + SOON_NS)
    assert node.health.feeders_connected == 1


def test_a_stop_of_thirty_seconds_closes_nothing_that_its_feeders_have_sent(node: Node) -> None:
    node.fragment(0, 1)
    node.sleep_until(node.bench.now + 10 * MS)
    node.inbox.append(lambda: node.fragment(0, 2))
    node.bench.now += 30 * SECOND
    node.ring()
    node.sleep_until(node.bench.now + FLUSH + 300 * MS)
    assert node.closed == {str(CloseReason.COMPLETE): 1}
    assert node.sealed == [[0]]
    assert node.health.feeders_connected == 2


def test_late_fragments_of_a_feeder_after_a_stop_have_time_to_arrive(node: Node) -> None:
    node.fragment(0, 1)
    node.sleep_until(node.bench.now + 10 * MS)
    node.bench.now += 30 * SECOND
    node.ring()
    node.sleep_until(node.bench.now + 200 * MS)
    assert node.closed == {}
    node.fragment(0, 2)
    assert node.closed == {str(CloseReason.COMPLETE): 1}


def test_small_grants_are_sent_soon_without_a_heartbeat(node: Node) -> None:
    node.bench.connections.sent.clear()
    for mep in range(3):
        node.fragment(mep, 1)
        node.fragment(mep, 2)
    node.sleep_until(node.bench.now + FLUSH)
    node.arrive(node.bench.finish_batches)
    node.sleep_until(node.bench.now + SOON_NS)
    assert any(isinstance(message, Credit) for message in node.bench.connections.take())


def test_input_after_a_sleep_without_a_socket_is_processed_soon_and_not_at_once(node: Node) -> None:
    node.sleep_until(node.bench.now + SECOND)
    assert node.alarm.due_ns is not None
    node.bench.now = node.alarm.due_ns - 100 * MS
    node.bench.control.pause()
    assert node.alarm.due_ns == node.bench.now + SOON_NS


def test_the_watchdog_is_served_at_its_interval(node: Node) -> None:
    node.notifier.watchdog_interval = 0.05
    node.sleep_until(node.bench.now + SECOND)
    before = len(node.pings)
    node.sleep_until(node.bench.now + SECOND)
    assert len(node.pings) - before == 20


def test_a_problem_of_the_disk_has_the_time_at_which_it_was_first_seen(node: Node) -> None:
    for text in ("/data: No space left on device", "/data: Input/output error"):
        node.store.problem = text
        node.tasks.note()
        begin = node.health.disk_problem_since_ns
        assert begin == node.clock.now_ns
        node.sleep_until(node.bench.now + 3 * SECOND)
        assert node.health.disk_problem == text
        assert node.health.disk_problem_since_ns == begin
        node.store.problem = None
        node.sleep_until(node.bench.now + SECOND)
        assert node.health.disk_problem is None


def test_dead_time_is_counted_while_no_feeder_may_send(node: Node) -> None:
    for _ in range(2):
        while node.bench.builder.window.outstanding > 0:
            node.fragment(node.bench.counters.meps_opened, 1)
        # The feeders also use credits granted by a tick.
        node.sleep_until(node.bench.now + SOON_NS)
    begin = node.bench.now
    node.sleep_until(begin + 60 * MS)
    counted = sum(node.bench.counters.dead_time[reason] for reason in DeadTimeReason)
    assert counted == pytest.approx(0.06, abs=0.026)


def test_the_alarm_is_not_set_for_each_fragment(node: Node) -> None:
    node.fragment(0, 1)
    before = node.alarm.settings
    for mep in range(1, 4):
        node.fragment(mep, 1)
    assert node.alarm.settings == before


@pytest.mark.loopback
async def test_an_idle_node_hardly_wakes_up(tmp_path: Path) -> None:
    def switches() -> int:
        """How often the threads of this process went to sleep."""
        tasks = Path("/proc/self/task").glob("*/status")
        lines = [line for task in tasks for line in task.read_text().splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))

    with zmq.asyncio.Context() as context:
        async with running_node(make_config(tmp_path)) as (running, _), make_feeder(context, running) as feeder:
            await asyncio.sleep(0.5)
            assert feeder.is_connected
            before = switches()
            await asyncio.sleep(2.0)
            assert switches() - before < 150
