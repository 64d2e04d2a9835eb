"""What a node does every few milliseconds: deadlines, its own health, dead time, the watchdog of the supervisor."""

import asyncio
from collections.abc import Callable

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import DeadTimeReason
from hltnode.daemon.compute.pipeline import Pipeline
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.node.dead_time import DeadTimeClock
from hltnode.daemon.node.systemd import Notifier
from hltnode.daemon.output.output_set import Outputs
from hltnode.daemon.readout.feeder_protocol import FeederProtocol
from hltnode.daemon.readout.silent_sources import SilentSourceMonitor
from hltnode.daemon.storage.event_store import EventStore
from hltnode.protocol.transport.run_control_messages import RunState

# Well below the shortest useful deadline (1 ms steps in the configuration, 20 ms by default); 200 wake-ups a second.
TICK_SECONDS = 0.005
# Fifty ticks: no callback of ours takes that long, so the machine or a callback has a problem.
LOOP_STALL_SECONDS = 0.25
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("periodic_tasks")


class PeriodicTasks:
    """Ticks from `start` to `stop`, in the event loop.

    Args:
        state: state of the run control.
        failed: called with the reason when the node is not healthy.
    """

    def __init__(
        self,
        protocol: FeederProtocol,
        state: Callable[[], RunState],
        counters: Counters,
        health: Health,
        pipeline: Pipeline,
        store: EventStore,
        outputs: Outputs,
        silence: SilentSourceMonitor,
        notifier: Notifier,
        failed: Callable[[str], None],
        clock_ns: Callable[[], int],
    ) -> None:
        self._protocol = protocol
        self._state = state
        self._counters = counters
        self._health = health
        self._pipeline = pipeline
        self._store = store
        self._outputs = outputs
        self._silence = silence
        self._notifier = notifier
        self._failed = failed
        self._clock_ns = clock_ns
        self._dead_time = DeadTimeClock(counters.dead_time)
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._next_ping_ns = 0
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
        now_ns = self._clock_ns()
        time_s = self._loop.time()
        self._note_lag(max(0.0, time_s - self._due))
        self._protocol.tick(now_ns)
        self._silence.look(now_ns)
        self._outputs.tick()
        self._note_health(now_ns)
        self._dead_time.note(now_ns, self._dead_time_reason())
        problems = self._health.liveness_problems(now_ns)
        if problems:
            self._failed("; ".join(problems.values()))
        elif self._notifier.watchdog_interval is not None and now_ns >= self._next_ping_ns:
            self._notifier.watchdog()
            self._next_ping_ns = now_ns + int(self._notifier.watchdog_interval * 1e9)
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
        health.pipeline_tick_ns = self._pipeline.tick_ns
        health.feeders_connected = self._protocol.registry.connected(now_ns)
        health.disk_problem = self._store.problem
        health.output_problem = self._outputs.problem(now_ns)
        state = self._state()
        health.not_taking = None if state is RunState.RUNNING else f"state is {state}"

    def _dead_time_reason(self) -> DeadTimeReason | None:
        """Why the node cannot take data now; None if it can, or if there is no run."""
        if self._state() is RunState.PAUSED:
            return DeadTimeReason.PAUSED
        builder = self._protocol.builder
        if builder.run is None or builder.draining or builder.window.outstanding > 0:
            return None
        held_up = self._health.disk_problem is not None or self._health.output_problem is not None
        return DeadTimeReason.OUTPUT if held_up else DeadTimeReason.NO_SLOT
