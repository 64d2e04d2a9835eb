"""Time during which the node could read what feeders have sent: the time of all deadlines on feeders (no I/O).

A process that was stopped (SIGSTOP, a machine that was suspended), or whose event loop was held up, finds in its
sockets what came meanwhile. Were that time to count, MEPs would time out before their fragments are read, and feeders
would be taken as silent before their hellos are read. So this clock does not count the time in which nothing was read,
and stands still until what has come meanwhile is read.
"""

from collections.abc import Callable

# Ticks come every 5 ms and sockets are drained at least as often; a longer gap is a stall, and not counted beyond this.
LONGEST_STEP_NS = 50_000_000
# After a stall, what the feeders could not send needs time to come: as long as the stall lasted, at most this.
CATCH_UP_NS = 250_000_000
# The clock may stand still for this long beyond stalls, and gets it back while it runs. So whoever keeps a socket from
# ever being empty can at most halve its speed, and no deadline is put off for good.
ALLOWANCE_NS = 2_000_000_000


class ReadingClock:
    """Monotonic ns, never ahead of `clock_ns`. All calls from the event loop's thread.

    `read` is called when sockets are about to be read, `tick` when they have been.
    """

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self.true_ns = clock_ns()
        """Time of `clock_ns` at the last call."""
        self.now_ns = self.true_ns
        """Time of this clock at the last call."""
        self._catch_up_until_ns = self.true_ns
        self._stands_still = False
        self._allowance_ns = ALLOWANCE_NS

    def read(self) -> None:
        """Sockets are about to be read."""
        true_ns = self._clock_ns()
        step_ns = true_ns - self.true_ns
        self.true_ns = true_ns
        if step_ns > LONGEST_STEP_NS:
            self._catch_up_until_ns = true_ns + min(step_ns, CATCH_UP_NS)
            self._stands_still = True
            step_ns = LONGEST_STEP_NS
        if self._stands_still and self._allowance_ns >= step_ns:
            self._allowance_ns -= step_ns
            return
        self.now_ns += step_ns
        self._allowance_ns = min(self._allowance_ns + step_ns, ALLOWANCE_NS)

    def tick(self, *, drained: bool) -> int:
        """The sockets were read, and found empty if `drained`; returns the time."""
        self.read()
        self._stands_still = not drained or self.true_ns < self._catch_up_until_ns
        return self.now_ns
