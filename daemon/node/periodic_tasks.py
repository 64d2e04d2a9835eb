"""What a node does every few milliseconds: deadlines, its own health, dead time, the watchdog of the supervisor."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import DeadTimeReason
from hltnode.daemon.compute.pipeline import Pipeline
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.node.dead_time import DeadTimeClock
from hltnode.daemon.node.systemd import Notifier
from hltnode.daemon.output.output_queue import OutputQueue
from hltnode.daemon.output.output_set import Outputs
from hltnode.daemon.readout.feeder_protocol import FeederProtocol
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.readout.silent_sources import SilentSourceMonitor
from hltnode.daemon.storage.event_store import EventStore
from hltnode.protocol.transport.run_control_messages import RunState

# Well below the shortest useful deadline (1 ms steps in the configuration, 20 ms by default); 200 wake-ups a second.
TICK_SECONDS = 0.005
# Fifty ticks: no callback of ours takes that long, so the machine or a callback has a problem.
LOOP_STALL_SECONDS = 0.25
LOG_INTERVAL_NS = 10_000_000_000
# Shorter waits for a feeder are normal and not reported.
REPORTED_WAIT_NS = 1_000_000_000
# Source ids shown in one log line.
SHOWN_SOURCES = 32

log = get_logger("periodic_tasks")


class ReadByTick(Protocol):
    """A socket of feeders."""

    def read(self) -> bool:
        """Take what is there; False if there is more than fits one turn of the loop."""


class PeriodicTasks:
    """Ticks from `start` to `stop`, in the event loop.

    Args:
        sockets: those by which feeders send; read before deadlines are checked.
        state: state of the run control.
        failed: called with the reason when the node is not healthy.
    """

    def __init__(
        self,
        sockets: Sequence[ReadByTick],
        protocol: FeederProtocol,
        state: Callable[[], RunState],
        counters: Counters,
        health: Health,
        pipeline: Pipeline,
        store: EventStore,
        outputs: Outputs,
        room: OutputQueue,
        silence: SilentSourceMonitor,
        notifier: Notifier,
        failed: Callable[[str], None],
        clock: ReadingClock,
    ) -> None:
        self._sockets = sockets
        self._protocol = protocol
        self._state = state
        self._counters = counters
        self._health = health
        self._pipeline = pipeline
        self._store = store
        self._outputs = outputs
        self._room = room
        self._silence = silence
        self._notifier = notifier
        self._failed = failed
        self._clock = clock
        self._dead_time = DeadTimeClock(counters.dead_time)
        self._limit = RateLimit(LOG_INTERVAL_NS, lambda: clock.true_ns)
        self._next_ping_ns = 0
        self._pipeline_advanced_ns = pipeline.advanced_ns
        self._pipeline_tick_ns = 0
        self._acknowledged = 0
        self._feeder_since_ns: int | None = None
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tick for the first time."""
        self._loop = loop
        self._due = loop.time()
        self._tick()

    def stop(self) -> None:
        """Tick no more."""
        if self._handle is not None:
            self._handle.cancel()

    def _tick(self) -> None:
        time_s = self._loop.time()
        self._note_lag(max(0.0, time_s - self._due))
        # What has come is taken before it is judged what has not come.
        emptied = [socket.read() for socket in self._sockets]
        now_ns = self._clock.tick(drained=all(emptied))
        true_ns = self._clock.true_ns
        self._protocol.tick(now_ns)
        self._silence.look(true_ns)
        self._outputs.tick()
        self._note_health(now_ns)
        self._note_dead_time(true_ns)
        problems = self._health.liveness_problems(now_ns)
        if problems:
            self._failed("; ".join(problems.values()))
        elif self._notifier.watchdog_interval is not None and true_ns >= self._next_ping_ns:
            self._notifier.watchdog()
            self._next_ping_ns = true_ns + int(self._notifier.watchdog_interval * 1e9)
        self._due = time_s + TICK_SECONDS
        self._handle = self._loop.call_later(TICK_SECONDS, self._tick)

    def _note_lag(self, lag_s: float) -> None:
        counters = self._counters
        counters.loop_lag = lag_s
        counters.loop_lag_max = max(counters.loop_lag_max, lag_s)
        if lag_s > LOOP_STALL_SECONDS:
            counters.loop_stalls += 1
            left_out = self._limit.due("stall")
            if left_out is not None:
                log.warning("event_loop_stalled", seconds=round(lag_s, 3), left_out=left_out)

    def _note_health(self, now_ns: int) -> None:
        health = self._health
        health.loop_tick_ns = now_ns
        if self._pipeline.tick_ns != self._pipeline_tick_ns:
            self._pipeline_tick_ns = self._pipeline.tick_ns
            health.pipeline_tick_ns = now_ns
        health.feeders_connected = self._protocol.registry.connected(now_ns)
        problem = self._store.problem
        if problem is not None and health.disk_problem is None:
            health.disk_problem_since_ns = now_ns
        health.disk_problem = problem
        health.output_problem = self._outputs.problem(self._clock.true_ns)
        acknowledged = self._counters.meps_acknowledged
        if not self._protocol.builder.awaits_acknowledgement or acknowledged != self._acknowledged:
            self._acknowledged = acknowledged
            health.unacknowledged_since_ns = None
        elif health.unacknowledged_since_ns is None or self._pipeline.advanced_ns != self._pipeline_advanced_ns:
            # A dense batch may take longer than the limit; as long as it gets on all is well.
            health.unacknowledged_since_ns = now_ns
        self._pipeline_advanced_ns = self._pipeline.advanced_ns
        state = self._state()
        health.not_taking = None if state is RunState.RUNNING else f"state is {state}"

    def _note_dead_time(self, true_ns: int) -> None:
        reason = self._dead_time_reason()
        self._dead_time.note(true_ns, reason)
        if reason is not DeadTimeReason.FEEDER:
            self._feeder_since_ns = None
        elif self._feeder_since_ns is None:
            self._feeder_since_ns = true_ns
        elif true_ns - self._feeder_since_ns > REPORTED_WAIT_NS and self._limit.due("feeder") is not None:
            builder = self._protocol.builder
            oldest = min(builder.open.values(), key=lambda mep: mep.mep)
            missing = builder.missing(oldest)
            log.warning("waiting_for_feeder", mep=oldest.mep, missing=missing[:SHOWN_SOURCES], n_missing=len(missing))

    def _dead_time_reason(self) -> DeadTimeReason | None:
        """Why the node cannot take data now; None if it can, or if there is no run."""
        if self._state() is RunState.PAUSED:
            return DeadTimeReason.PAUSED
        builder = self._protocol.builder
        if builder.run is None or builder.draining or builder.window.outstanding > 0:
            return None
        if self._room.is_full or self._health.disk_problem is not None or self._health.output_problem is not None:
            return DeadTimeReason.OUTPUT
        return DeadTimeReason.FEEDER if builder.open and not builder.is_computing else DeadTimeReason.NO_SLOT
