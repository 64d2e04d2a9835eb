"""Limit of attempts by key: a number at once, and one more each interval (no I/O, no clock)."""

from collections import OrderedDict

# More than the clients of a node; the limit keeps many addresses from growing its memory.
MAX_KEYS = 1024


class AttemptLimit:
    """Counts attempts by key. Times are monotonic nanoseconds.

    Args:
        at_once: attempts without a pause.
        interval_ns: time after which one more is allowed.
    """

    def __init__(self, at_once: int, interval_ns: int) -> None:
        self._burst_ns = at_once * interval_ns
        self._interval_ns = interval_ns
        self._free_ns: OrderedDict[str, int] = OrderedDict()
        """When all attempts of a key are allowed again."""

    def wait_ns(self, key: str, now_ns: int) -> int:
        """Time until the next attempt of this key is allowed; 0 if it is now."""
        return max(0, self._free_ns.get(key, now_ns) + self._interval_ns - self._burst_ns - now_ns)

    def count(self, key: str, now_ns: int) -> None:
        """Count an attempt."""
        self._free_ns[key] = max(self._free_ns.get(key, now_ns), now_ns) + self._interval_ns
        self._free_ns.move_to_end(key)
        if len(self._free_ns) > MAX_KEYS:
            self._free_ns.popitem(last=False)
