"""Periodic work of a node: deadlines, health, dead time, and the watchdog of systemd.

The event loop sleeps until the earliest due time or the next message. An idle node wakes up twice a second.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from hltnode.daemon.common.alarm import Alarm
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import DeadTimeReason
from hltnode.daemon.compute.pipeline import Pipeline
from hltnode.daemon.machine.systemd import Notifier
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.monitoring.status_page.rates import RateWindow
from hltnode.daemon.node.dead_time import DeadTimeClock
from hltnode.daemon.output.output_queue import OutputQueue
from hltnode.daemon.output.output_set import Outputs
from hltnode.daemon.readout.builder_control import BuilderControl
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.readout.silent_sources import SilentSourceMonitor
from hltnode.daemon.storage.event_store import EventStore
from hltnode.protocol.transport.run_control_messages import RunState

# The longest sleep. Half a second is short enough for the health pages and for feeders that left a run.
HEARTBEAT_NS = 500_000_000
# Period of checks of the dead time reason during dead time: it may change without a message.
DEAD_TIME_LOOK_NS = 25_000_000
# No callback takes this long normally: the machine or a callback has a problem.
LOOP_STALL_SECONDS = 0.25
LOG_INTERVAL_NS = 10_000_000_000
# Shorter waits for a feeder are normal; they are not reported.
REPORTED_WAIT_NS = 1_000_000_000
# Largest number of source ids in one log line.
SHOWN_SOURCES = 32

log = get_logger("periodic_tasks")


class ReadByTick(Protocol):
    """A socket that feeders send to."""

    def read(self) -> bool:
        """Read available messages; False if some are left for the next turn of the loop."""


class Ringing(Protocol):
    """A timer, as `common.alarm.Alarm`."""

    def set(self, delay_ns: int, /) -> None: ...
    def close(self) -> None: ...


class PeriodicTasks:
    """Ticks from `start` to `stop`, in the event loop.

    Args:
        sockets: the sockets that feeders send to; read before deadlines are checked.
        state: state of the run control.
        failed: called with the reason when the node is not healthy.
        ticked: called after deadlines were checked.
        alarm: creates the timer.
    """

    def __init__(
        self,
        sockets: Sequence[ReadByTick],
        control: BuilderControl,
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
        rates: RateWindow,
        ticked: Callable[[], None] = lambda: None,
        alarm: Callable[[asyncio.AbstractEventLoop, Callable[[], None]], Ringing] = Alarm,
    ) -> None:
        self._sockets = sockets
        self._control = control
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
        self._rates = rates
        self._ticked = ticked
        self._dead_time = DeadTimeClock(counters.dead_time)
        self._limit = RateLimit(LOG_INTERVAL_NS, lambda: clock.true_ns)
        self._next_ping_ns = 0
        self._pipeline_advanced_ns = pipeline.advanced_ns
        self._pipeline_tick_ns = 0
        self._acknowledged = 0
        self._feeder_since_ns: int | None = None
        self._make_alarm = alarm
        self._alarm: Ringing | None = None
        self._due_ns: int | None = None
        """Time of the alarm (true time); None during a tick."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start, with a first tick."""
        self._alarm = self._make_alarm(loop, self._tick)
        self._control.builder.wake_lowered = self._wake_earlier
        self._tick()

    def stop(self) -> None:
        """Stop ticking."""
        if self._alarm is not None:
            self._alarm.close()
            self._alarm = None

    def note(self) -> None:
        """Update health and dead time before they are shown."""
        self._clock.read()
        self._note_health(self._clock.now_ns)
        self._note_dead_time(self._clock.true_ns)

    def _tick(self) -> None:
        due_ns, self._due_ns = self._due_ns, None
        self._clock.read()
        if due_ns is not None:
            self._note_lag(max(0, self._clock.true_ns - due_ns) * 1e-9)
        # Read received messages before deadlines are checked; otherwise received data could count as missing.
        emptied = [socket.read() for socket in self._sockets]
        now_ns = self._clock.tick(drained=all(emptied))
        true_ns = self._clock.true_ns
        self._control.tick(now_ns)
        self._ticked()
        self._silence.look(true_ns)
        self._note_health(now_ns)
        self._note_dead_time(true_ns)
        self._rates.note(true_ns)
        problems = self._health.liveness_problems(now_ns)
        if problems:
            self._failed("; ".join(problems.values()))
        elif self._notifier.watchdog_interval is not None and true_ns >= self._next_ping_ns:
            self._notifier.watchdog()
            self._next_ping_ns = true_ns + int(self._notifier.watchdog_interval * 1e9)
        self._sleep()

    def _wake_earlier(self) -> None:
        """The builder needs an earlier tick than it last requested; during a tick it is asked anyway."""
        if self._due_ns is not None:
            self._sleep()

    def _sleep(self) -> None:
        """Set the alarm to the earliest due time."""
        true_ns = self._clock.true_ns
        longest_ns = HEARTBEAT_NS
        if self._dead_time.reason not in (None, DeadTimeReason.PAUSED):
            longest_ns = DEAD_TIME_LOOK_NS
        if self._notifier.watchdog_interval is not None:
            longest_ns = min(longest_ns, max(0, self._next_ping_ns - true_ns))
        delay_ns = self._clock.sleep(self._control.builder.wake_ns, longest_ns)
        self._due_ns = self._clock.wakes_ns
        if self._alarm is not None:
            self._alarm.set(delay_ns)

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
        health.feeders_connected = self._control.registry.connected(now_ns)
        self._control.note_waiting(now_ns)
        health.feeders_needed = self._control.feeders_needed
        health.run_waits = self._control.waiting
        health.run_waits_seconds = self._control.waiting_seconds(now_ns)
        problem = self._store.problem
        if problem is not None and health.disk_problem is None:
            health.disk_problem_since_ns = now_ns
        health.disk_problem = problem
        health.output_problem = self._outputs.problem(self._clock.true_ns)
        acknowledged = self._counters.meps_acknowledged
        if not self._control.builder.awaits_acknowledgement or acknowledged != self._acknowledged:
            self._acknowledged = acknowledged
            health.unacknowledged_since_ns = None
        elif health.unacknowledged_since_ns is None or self._pipeline.advanced_ns != self._pipeline_advanced_ns:
            # A dense batch may take longer than the limit; its progress counts.
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
            builder = self._control.builder
            oldest = min(builder.open.values(), key=lambda mep: mep.mep)
            missing = builder.missing(oldest)
            log.warning("waiting_for_feeder", mep=oldest.mep, missing=missing[:SHOWN_SOURCES], n_missing=len(missing))

    def _dead_time_reason(self) -> DeadTimeReason | None:
        """Why the node cannot take data now; None if it can or if there is no run."""
        if self._state() is RunState.PAUSED:
            return DeadTimeReason.PAUSED
        builder = self._control.builder
        if builder.run is None or builder.draining or builder.window.outstanding > 0:
            return None
        if self._health.disk_problem is not None:
            return DeadTimeReason.DISK
        if self._health.output_problem is not None:
            return DeadTimeReason.CONSUMER
        if self._room.is_full:
            return DeadTimeReason.CONSUMER if self._outputs.is_waiting else DeadTimeReason.DISK
        return DeadTimeReason.FEEDER if builder.open and not builder.is_computing else DeadTimeReason.COMPUTING
