"""The clock of the model: a heap of calls with their times in whole nanoseconds."""

import gc
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class Clock:
    """Calls functions at times of the model; those of the same time in the order of `call_at`."""

    def __init__(self) -> None:
        self.calls = 0
        """Number of calls that were asked for: the work of the model."""
        self.now_ns = 0
        """The time of the model in ns. An attribute, because a MEP reads it more than twenty times."""
        self._heap: list[tuple[int, int, Callable[[Any], None], Any]] = []

    def call_at(self, time_ns: int, function: Callable[[Any], None], value: Any = None) -> None:
        """Call `function(value)` at a time. Raises ValueError if it is before the present one."""
        if time_ns < self.now_ns:
            raise ValueError(f"a call at {time_ns} ns, but the model is at {self.now_ns} ns")
        self.calls = number = self.calls + 1
        heappush(self._heap, (time_ns, number, function, value))

    def run(self, until_ns: int | None = None) -> None:
        """Run until no call is left, or until a time; a call at that time is not made.

        Raises ValueError for a time before the present one.

        Python's garbage collector is off meanwhile. A run leaves no cycles behind, but the collector reads all MEPs of
        all nodes again and again: at 60 nodes a quarter of the time of a run.
        """
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            self._run(until_ns)
        finally:
            if was_enabled:
                gc.enable()

    def _run(self, until_ns: int | None) -> None:
        if until_ns is not None and until_ns < self.now_ns:
            raise ValueError(f"a run until {until_ns} ns, but the model is at {self.now_ns} ns")
        heap = self._heap
        while heap:
            if until_ns is not None and heap[0][0] >= until_ns:
                break
            self.now_ns, _, function, value = heappop(heap)
            function(value)
        if until_ns is not None:
            self.now_ns = until_ns
