"""The rate at which MEPs are offered."""

from hltnode.daemon.common.clock import Clock

# A sender that was held up catches up with at most this much of the time that it lost.
MAX_CATCH_UP_NS = 1_000_000_000


class Pacer:
    """Holds a sender back to `rate` events per second; None for as fast as possible."""

    def __init__(self, rate: float | None, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._next_ns = clock.monotonic_ns()

    async def admit(self, n_events: int) -> None:
        """Return when the next events may be sent."""
        if self._rate is None:
            return
        wait_ns = self._next_ns - self._clock.monotonic_ns()
        await self._clock.sleep(max(0, wait_ns) * 1e-9)
        earliest_ns = self._clock.monotonic_ns() - MAX_CATCH_UP_NS
        self._next_ns = max(self._next_ns, earliest_ns) + int(n_events / self._rate * 1e9)
