"""Time during which the node could read what feeders have sent: the time of all deadlines on feeders (no I/O).

A process that was stopped (SIGSTOP, a machine that was suspended), or whose event loop was held up, finds in its
sockets what came meanwhile. Were that time to count, MEPs would time out before their fragments are read, and feeders
would be taken as silent before their hellos are read. So this clock does not count the time in which nothing was read,
and stands still until what has come meanwhile is read.

An event loop that sleeps reads at once what comes, so that time counts. It says until when it is going to sleep; what
passes beyond that was a stall.
"""

from collections.abc import Callable

# A loop that comes back later than it should have by more than this was held up.
LONGEST_STEP_NS = 50_000_000
# While the clock stands still it needs ticks to go on, this often.
STANDING_TICK_NS = 5_000_000
# After a stall, what the feeders could not send needs time to come: as long as the stall lasted, at most this.
CATCH_UP_NS = 250_000_000
# The clock may stand still for this long beyond stalls, and gets it back while it runs. So whoever keeps a socket from
# ever being empty can at most halve its speed, and no deadline is put off for good.
ALLOWANCE_NS = 2_000_000_000


class ReadingClock:
    """Monotonic ns, never ahead of `clock_ns`. All calls from the event loop's thread.

    `read` is called when sockets are about to be read, `tick` when they have been, `sleep` when nothing is left to do,
    `current_ns` by what comes another way.
    """

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self.true_ns = clock_ns()
        """Time of `clock_ns` at the last call."""
        self.now_ns = self.true_ns
        """Time of this clock at the last call."""
        self._catch_up_until_ns = self.true_ns
        self.wakes_ns = self.true_ns
        """Until when the loop sleeps, of `clock_ns`."""
        self._stands_still = False
        self._allowance_ns = ALLOWANCE_NS

    def read(self) -> None:
        """Sockets are about to be read."""
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
        """The time, when something else than a socket has woken the loop: the clock stood at the last reading."""
        self.read()
        return self.now_ns

    def tick(self, *, drained: bool) -> int:
        """The sockets were read, and found empty if `drained`; returns the time."""
        self.read()
        self._stands_still = not drained or self.true_ns < self._catch_up_until_ns
        return self.now_ns

    def true_time_of(self, now_ns: int) -> int:
        """When this clock showed a time, in ns of `clock_ns`; too late by stalls since then."""
        return now_ns + self.true_ns - self.now_ns

    def sleep(self, wake_ns: int, longest_ns: int) -> int:
        """The loop sleeps until something comes, or this clock shows `wake_ns`, but not longer than `longest_ns`.

        Returns for how long.
        """
        left_ns = min(wake_ns - self.now_ns, longest_ns)
        if self._stands_still:
            left_ns = min(left_ns, STANDING_TICK_NS)
        self.wakes_ns = self.true_ns + left_ns
        return self.wakes_ns - self._clock_ns()
