"""Sets of MEP ids, stored as disjoint ranges (no I/O, no clock)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


class MepRanges:
    """MEP ids, stored as disjoint ranges; ids that come in order form one range."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._first: list[int] = []
        self._last: list[int] = []
        for first, last in ranges:
            self.add(first, last)

    def __contains__(self, mep: int) -> bool:
        i = bisect_right(self._first, mep) - 1
        return i >= 0 and mep <= self._last[i]

    def add(self, first: int, last: int | None = None) -> None:
        """Add one id, or a range of ids (last included); adjacent ranges merge."""
        last = first if last is None else last
        i = bisect_left(self._last, first - 1)
        j = bisect_right(self._first, last + 1)
        if i < j:
            first = min(first, self._first[i])
            last = max(last, self._last[j - 1])
        self._first[i:j] = [first]
        self._last[i:j] = [last]

    def discard(self, first: int, last: int | None = None) -> None:
        """Remove one id, or a range of ids (last included); absent ids are ignored."""
        last = first if last is None else last
        i = bisect_left(self._last, first)
        j = bisect_right(self._first, last)
        if i >= j:
            return
        pieces = [(self._first[i], first - 1), (last + 1, self._last[j - 1])]
        kept = [piece for piece in pieces if piece[0] <= piece[1]]
        self._first[i:j] = [piece[0] for piece in kept]
        self._last[i:j] = [piece[1] for piece in kept]

    def __bool__(self) -> bool:
        return bool(self._first)

    @property
    def count(self) -> int:
        """Number of ids."""
        return sum(self._last) - sum(self._first) + len(self._first)

    def overlap(self, first: int, last: int) -> list[tuple[int, int]]:
        """The (first, last) ranges of the ids within a range; empty if last is below first."""
        if last < first:
            return []
        i = bisect_left(self._last, first)
        j = bisect_right(self._first, last)
        pairs = zip(self._first[i:j], self._last[i:j], strict=True)
        return [(max(first, begin), min(last, end)) for begin, end in pairs]

    def ranges(self, from_mep: int = 0) -> list[tuple[int, int]]:
        """The (first, last) ranges at or above an id."""
        i = max(bisect_right(self._first, from_mep) - 1, 0)
        pairs = zip(self._first[i:], self._last[i:], strict=True)
        return [(max(first, from_mep), last) for first, last in pairs if last >= from_mep]


def as_ranges(meps: Iterable[int]) -> list[tuple[int, int]]:
    """Sorted, merged (first, last) ranges of some MEP ids."""
    return MepRanges((mep, mep) for mep in meps).ranges()
