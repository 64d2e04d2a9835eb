"""The clock of the model: SimPy's queue of events, in whole nanoseconds, with a function for each event."""

import gc
from collections.abc import Callable
from typing import Any

import simpy


class _Call(simpy.Event):
    """An event that calls a function: without a process, a closure or a list of its own, which SimPy's events have."""

    __slots__ = ("argument", "callbacks", "function")
    _ok = True

    def __init__(self, callbacks: Any, function: Callable[[Any], None], argument: Any) -> None:
        self.callbacks = callbacks
        self.function = function
        self.argument = argument


class Clock:
    """Calls functions at times of the model; those of the same time in the order of `call_at`."""

    def __init__(self) -> None:
        self.environment = simpy.Environment(initial_time=0)
        self.calls = 0
        """Number of calls that were asked for: the work of the model."""
        self.now_ns = 0
        """The time of the model in ns. An attribute, because a MEP reads it more than twenty times."""
        self._callbacks = (self._fire,)

    def call_at(self, time_ns: int, function: Callable[[Any], None], value: Any = None) -> None:
        """Call `function(value)` at a time, which is not before the present one."""
        self.calls += 1
        self.environment.schedule(_Call(self._callbacks, function, value), delay=time_ns - self.now_ns)

    def _fire(self, call: Any) -> None:
        self.now_ns = self.environment.now  # type: ignore[assignment]
        call.function(call.argument)

    def run(self, until_ns: int | None = None) -> None:
        """Run until no event is left, or until a time.

        Python's garbage collector is off meanwhile. A run leaves no cycles behind, but the collector reads all MEPs of
        all nodes again and again: at 60 nodes a quarter of the time of a run.
        """
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            self.environment.run(until_ns)
        finally:
            if was_enabled:
                gc.enable()
        self.now_ns = int(self.environment.now)
