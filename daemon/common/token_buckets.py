"""Token buckets: how much each peer may do at once, and how much more each second. No I/O, no clock."""

from collections import OrderedDict
from collections.abc import Hashable

# Peers with an account. The account that was not used for longest is dropped first.
MOST_ACCOUNTS = 4096


class TokenBucket:
    """A full bucket holds `at_once` units and gains `per_second` of them. Times in ns."""

    __slots__ = ("_at_once", "_left", "_per_second", "_since_ns")

    def __init__(self, at_once: float, per_second: float, now_ns: int) -> None:
        self._at_once = at_once
        self._per_second = per_second
        self._left = at_once
        self._since_ns = now_ns

    def wait_ns(self, units: float, now_ns: int) -> int:
        """Time until the bucket has these units, 0: it has them. A full bucket has any number."""
        self._left = min(self._at_once, self._left + max(0, now_ns - self._since_ns) * self._per_second / 1e9)
        self._since_ns = now_ns
        lacking = min(units, self._at_once) - self._left
        return 0 if lacking <= 0 else int(lacking / self._per_second * 1e9) + 1

    def spend(self, units: float) -> None:
        """Take units, also more than the bucket has: the next ones then have to wait."""
        self._left -= units


class TokenBuckets:
    """A bucket for each peer, full at first."""

    def __init__(self, at_once: float, per_second: float) -> None:
        self._at_once = at_once
        self._per_second = per_second
        self._buckets: OrderedDict[Hashable, TokenBucket] = OrderedDict()

    def of(self, peer: Hashable, now_ns: int) -> TokenBucket:
        """The bucket of a peer."""
        bucket = self._buckets.get(peer)
        if bucket is None:
            bucket = self._buckets[peer] = TokenBucket(self._at_once, self._per_second, now_ns)
            if len(self._buckets) > MOST_ACCOUNTS:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(peer)
        return bucket

    def __len__(self) -> int:
        return len(self._buckets)
