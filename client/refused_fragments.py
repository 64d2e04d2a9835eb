"""Fragments that a node refused permanently, so that none of its MEPs contains them, by reason (no I/O, no clock)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.mep_ranges import MepRanges


@dataclass(frozen=True, slots=True)
class RefusedCount:
    """Number of fragments refused for one reason, and their MEPs."""

    fragments: int
    meps: int


class RefusedFragments:
    """Counts each fragment once, under its first reason, even if its refusal is repeated."""

    def __init__(self) -> None:
        self._meps: dict[tuple[RejectReason, int], MepRanges] = {}

    def __bool__(self) -> bool:
        return bool(self._meps)

    def add(self, reason: RejectReason, source: int, mep: int) -> None:
        """Count a permanently refused fragment."""
        if not any(mep in self._meps.get((other, source), ()) for other in RejectReason):
            self._meps.setdefault((reason, source), MepRanges()).add(mep)

    def discard(self, reason: RejectReason, mep: int) -> None:
        """Forget the fragments of a MEP that were refused for this reason: they go to another node."""
        for (of_reason, source), meps in list(self._meps.items()):
            if of_reason is reason:
                meps.discard(mep)
                if not meps:
                    del self._meps[of_reason, source]

    @staticmethod
    def count(of_feeders: Iterable[RefusedFragments]) -> dict[str, RefusedCount]:
        """Fragments and MEPs by reason, summed over several feeders. A MEP counts once, even if several feeders had a
        part of it refused."""
        fragments: dict[str, int] = {}
        meps: dict[str, MepRanges] = {}
        for refused in of_feeders:
            for (reason, _source), ranges in refused._meps.items():
                fragments[reason] = fragments.get(reason, 0) + ranges.count
                union = meps.setdefault(reason, MepRanges())
                for first, last in ranges.ranges():
                    union.add(first, last)
        return {str(reason): RefusedCount(n, meps[reason].count) for reason, n in fragments.items()}
