"""Selection of a sample: a fraction of all items, up to a maximum rate (no I/O, no clock)."""


class Sampler:
    """Takes every 1/fraction-th item while the rate allows it; even spacing makes the sample reproducible."""

    def __init__(self, fraction: float, max_rate: float) -> None:
        self._fraction = fraction
        self._max_rate = max_rate
        self._share = 0.0
        # A burst of one second is allowed: items arrive in batches.
        self._most = max(1.0, max_rate)
        self._tokens = self._most
        self._last_ns: int | None = None

    def takes(self, now_ns: int) -> bool:
        """Whether the next item belongs to the sample; `now_ns` is monotonic."""
        self._share += self._fraction
        if self._share < 1.0:
            return False
        self._share -= 1.0
        if self._last_ns is not None:
            self._tokens = min(self._most, self._tokens + (now_ns - self._last_ns) * 1e-9 * self._max_rate)
        self._last_ns = now_ns
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
