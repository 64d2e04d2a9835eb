"""Credits and acknowledgements as plain state: which MEP ids may come, and which are done (no I/O, no clock)."""

from bisect import bisect_left, bisect_right


class CreditWindow:
    """The window of MEP ids that feeders may send: ids below ``limit``.

    ``gaps`` are ids below the highest opened one of which nothing has come yet: each still owns a credit.
    """

    def __init__(self, first_mep: int) -> None:
        self.highest = first_mep - 1
        self.limit = first_mep
        self.gaps: dict[int, int] = {}

    @property
    def outstanding(self) -> int:
        """Credits that were granted and not used: each needs a place in a slot."""
        return self.limit - 1 - self.highest + len(self.gaps)

    def opened(self, mep: int, now_ns: int) -> None:
        """A MEP below the limit uses its credit; ids that it has jumped over become gaps."""
        if mep > self.highest:
            for skipped in range(self.highest + 1, mep):
                self.gaps[skipped] = now_ns
            self.highest = mep
        else:
            self.gaps.pop(mep, None)

    def forget_gaps(self, before_ns: int) -> None:
        """Take back the credits of ids that were jumped over before a time: nobody seems to have them."""
        for mep in [mep for mep, since in self.gaps.items() if since < before_ns]:
            del self.gaps[mep]

    def raise_limit(self, places: int, at_least: int) -> bool:
        """Let the limit follow the places; False when it would move by less than ``at_least``."""
        limit = self.highest + 1 + places - len(self.gaps)
        if limit - self.limit < at_least:
            return False
        self.limit = limit
        return True


class AckLedger:
    """The MEP ids that were acknowledged, kept as few disjoint ranges (one, when MEPs end in order)."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []

    def __contains__(self, mep: int) -> bool:
        i = bisect_right(self._first, mep) - 1
        return i >= 0 and mep <= self._last[i]

    def add(self, first: int, last: int | None = None) -> None:
        """Note one id, or a range of ids (last included); ranges that touch merge."""
        last = first if last is None else last
        i = bisect_left(self._last, first - 1)
        j = bisect_right(self._first, last + 1)
        if i < j:
            first = min(first, self._first[i])
            last = max(last, self._last[j - 1])
        self._first[i:j] = [first]
        self._last[i:j] = [last]

    def ranges(self, from_mep: int = 0) -> list[tuple[int, int]]:
        """Acknowledged (first, last) ranges at or above an id."""
        i = max(bisect_right(self._first, from_mep) - 1, 0)
        pairs = zip(self._first[i:], self._last[i:], strict=True)
        return [(max(first, from_mep), last) for first, last in pairs if last >= from_mep]


def as_ranges(meps: list[int]) -> list[tuple[int, int]]:
    """Sorted, merged (first, last) ranges of some MEP ids."""
    ledger = AckLedger()
    for mep in meps:
        ledger.add(mep)
    return ledger.ranges()
