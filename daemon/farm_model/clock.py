"""The clock of the model: SimPy's queue of events, in whole nanoseconds, with a function for each event."""

from collections.abc import Callable
from typing import Any

import simpy
from simpy.events import NORMAL


class Clock:
    """Calls functions at times of the model; those of the same time in the order of `call_at`."""

    def __init__(self) -> None:
        self.environment = simpy.Environment(initial_time=0)
        self.calls = 0
        """Number of calls that were asked for: the work of the model."""

    @property
    def now_ns(self) -> int:
        """The time of the model in ns."""
        return int(self.environment.now)

    def call_at(self, time_ns: int, function: Callable[[Any], None], value: Any = None) -> None:
        """Call `function(value)` at a time, which is not before the present one."""
        self.calls += 1
        environment = self.environment
        # An event with a value and no process: half the cost of a process of SimPy that waits for a time-out.
        event = simpy.Event(environment)
        event._ok = True
        event._value = value
        assert event.callbacks is not None
        event.callbacks.append(lambda done: function(done._value))
        environment.schedule(event, NORMAL, time_ns - environment.now)

    def run(self, until_ns: int | None = None) -> None:
        """Run until no event is left, or until a time."""
        self.environment.run(until_ns)
