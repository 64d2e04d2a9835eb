"""Dead time: how long a node could not take data, by reason (no I/O, no clock)."""

from hltnode.daemon.common.vocabulary import DeadTimeReason


class DeadTimeClock:
    """Adds up elapsed time, however irregularly it is called. Times are monotonic nanoseconds.

    The time between two calls counts for the reason that held at the first of them: while the event loop stands still,
    no credit can be granted.
    """

    def __init__(self, seconds: dict[DeadTimeReason, float]) -> None:
        self._seconds = seconds
        self.reason: DeadTimeReason | None = None
        """What held at the last call."""
        self._since_ns = 0

    def note(self, now_ns: int, reason: DeadTimeReason | None) -> None:
        """The reason that holds from now on, None if the node takes data."""
        if self.reason is not None:
            self._seconds[self.reason] += (now_ns - self._since_ns) * 1e-9
        self.reason = reason
        self._since_ns = now_ns
