"""Rate limit for repeated log lines."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

# More than the code has kinds of messages; the limit keeps hostile input from growing the memory of the limiter.
MAX_LIMITED_KEYS = 1024


class RateLimit:
    """At most one line per `interval_ns` and key; the next line reports the number of suppressed lines."""

    def __init__(self, interval_ns: int, clock_ns: Callable[[], int]) -> None:
        self._interval_ns = interval_ns
        self._clock_ns = clock_ns
        self._seen: OrderedDict[Hashable, tuple[int, int]] = OrderedDict()

    def due(self, key: Hashable, n: int = 1) -> int | None:
        """Number of lines suppressed since the last line of `key` if a line is due now, else None.

        `n`: number of lines that this one stands for.
        """
        now = self._clock_ns()
        last, left_out = self._seen.get(key, (now - self._interval_ns, 0))
        if now - last < self._interval_ns:
            self._seen[key] = (last, left_out + n)
            return None
        self._seen[key] = (now, 0)
        self._seen.move_to_end(key)
        if len(self._seen) > MAX_LIMITED_KEYS:
            self._seen.popitem(last=False)
        return left_out + n - 1
