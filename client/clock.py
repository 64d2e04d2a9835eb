"""Injected time: code that waits or measures takes a clock as argument, so that a test can set the time."""

import asyncio
import contextlib
import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic and wall time in ns, and waiting in seconds."""

    def monotonic_ns(self) -> int:
        """Monotonic time; its origin is arbitrary."""

    def wall_ns(self) -> int:
        """Time since the Unix epoch."""

    async def sleep(self, seconds: float) -> None:
        """Return after this time."""

    async def wait(self, event: asyncio.Event, seconds: float | None) -> None:
        """Return when the event is set or after this time; None means no limit."""


class SystemClock:
    """The clock of the machine."""

    def monotonic_ns(self) -> int:
        """Time of `time.monotonic_ns`."""
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        """Time of `time.time_ns`."""
        return time.time_ns()

    async def sleep(self, seconds: float) -> None:
        """Sleep in the event loop."""
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float | None) -> None:
        """Wait in the event loop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()


SYSTEM_CLOCK = SystemClock()
