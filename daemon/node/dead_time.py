"""Dead time: the time in which a node could not take data, by reason (no I/O, no clock)."""

from hltnode.daemon.common.vocabulary import DeadTimeReason


class DeadTimeClock:
    """Sums dead time over irregular calls. Times are monotonic nanoseconds.

    The time between two calls counts for the reason of the first call: while the event loop is blocked, it grants no
    credits.
    """

    def __init__(self, seconds: dict[DeadTimeReason, float]) -> None:
        self._seconds = seconds
        self.reason: DeadTimeReason | None = None
        """The reason at the last call."""
        self._since_ns = 0

    def note(self, now_ns: int, reason: DeadTimeReason | None) -> None:
        """Set the current reason; None: the node takes data."""
        if self.reason is not None:
            self._seconds[self.reason] += (now_ns - self._since_ns) * 1e-9
        self.reason = reason
        self._since_ns = now_ns
