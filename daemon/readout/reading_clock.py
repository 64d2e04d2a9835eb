"""The clock of all deadlines on feeders: it counts only time in which the node could read their input (no I/O).

A process may be stopped (SIGSTOP, a suspended machine), or its event loop may be blocked. Meanwhile input collects in
its sockets. If that time counted, MEPs would time out and feeders would count as silent before their fragments and
hellos are read. So this clock does not count time without reading, and stands still until the collected input is read.

A sleeping event loop reads new input at once, so its sleep counts. The loop announces when its sleep ends; later time
is a stall.
"""

from collections.abc import Callable

# A loop that wakes later than announced by more than this was blocked.
LONGEST_STEP_NS = 50_000_000
# Interval of ticks while the clock stands still: only ticks let it continue.
STANDING_TICK_NS = 5_000_000
# After a stall, input that feeders could not send needs time to arrive: as long as the stall, at most this.
CATCH_UP_NS = 250_000_000
# The clock may stand still for this long in addition to stalls, and regains this allowance while it runs. So a peer
# that never lets a socket run empty can at most halve its speed, and every deadline passes in the end.
ALLOWANCE_NS = 2_000_000_000


class ReadingClock:
    """Monotonic ns, never ahead of `clock_ns`. All calls come from the thread of the event loop.

    Call `read` before sockets are read, `tick` after that, `sleep` when no work is left, and `current_ns` for input
    other than from sockets.
    """

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self.true_ns = clock_ns()
        """Time of `clock_ns` at the last call."""
        self.now_ns = self.true_ns
        """Time of this clock at the last call."""
        self._catch_up_until_ns = self.true_ns
        self.wakes_ns = self.true_ns
        """End of the announced sleep, by `clock_ns`."""
        self._stands_still = False
        self._allowance_ns = ALLOWANCE_NS

    def read(self) -> None:
        """Advance the clock before sockets are read."""
        true_ns = self._clock_ns()
        step_ns = true_ns - self.true_ns
        late_ns = true_ns - max(self.true_ns, self.wakes_ns)
        self.true_ns = true_ns
        if late_ns > LONGEST_STEP_NS:
            self._catch_up_until_ns = true_ns + min(step_ns, CATCH_UP_NS)
            self._stands_still = True
            step_ns = LONGEST_STEP_NS
        if self._stands_still and self._allowance_ns >= step_ns:
            self._allowance_ns -= step_ns
            return
        self.now_ns += step_ns
        self._allowance_ns = min(self._allowance_ns + step_ns, ALLOWANCE_NS)

    def current_ns(self) -> int:
        """The current time. Use it if no socket has woken the loop, because the clock is still at the last reading."""
        self.read()
        return self.now_ns

    def tick(self, *, drained: bool) -> int:
        """Advance the clock after sockets were read, until they were empty if `drained`. Returns the time."""
        self.read()
        self._stands_still = not drained or self.true_ns < self._catch_up_until_ns
        return self.now_ns

    def true_time_of(self, now_ns: int) -> int:
        """Convert a time of this clock to `clock_ns`. The result is too late by the stalls since then."""
        return now_ns + self.true_ns - self.now_ns

    def sleep(self, wake_ns: int, longest_ns: int) -> int:
        """Announce a sleep until `wake_ns` of this clock, input, or at most `longest_ns`. Returns its length in ns."""
        left_ns = min(wake_ns - self.now_ns, longest_ns)
        if self._stands_still:
            left_ns = min(left_ns, STANDING_TICK_NS)
        self.wakes_ns = self.true_ns + left_ns
        return self.wakes_ns - self._clock_ns()
