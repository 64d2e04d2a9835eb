"""What a node has refused for good: the fragments that no MEP of it contains, by reason (no I/O, no clock)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.mep_ranges import MepRanges


@dataclass(frozen=True, slots=True)
class RefusedCount:
    """Fragments that were refused for one reason, and the MEPs to which they belong."""

    fragments: int
    meps: int


class RefusedFragments:
    """Each fragment counts once, for the first reason, however often its refusal comes."""

    def __init__(self) -> None:
        self._meps: dict[tuple[RejectReason, int], MepRanges] = {}

    def __bool__(self) -> bool:
        return bool(self._meps)

    def add(self, reason: RejectReason, source: int, mep: int) -> None:
        """A fragment is refused for good."""
        if not any(mep in self._meps.get((other, source), ()) for other in RejectReason):
            self._meps.setdefault((reason, source), MepRanges()).add(mep)

    def discard(self, reason: RejectReason, mep: int) -> None:
        """The fragments of a MEP that were refused for this reason are sent elsewhere."""
        for (of_reason, source), meps in list(self._meps.items()):
            if of_reason is reason:
                meps.discard(mep)
                if not meps:
                    del self._meps[of_reason, source]

    @staticmethod
    def count(of_feeders: Iterable[RefusedFragments]) -> dict[str, RefusedCount]:
        """Fragments and MEPs by reason, of several feeders together: a MEP counts once, whichever feeders had a part of
        it refused."""
        fragments: dict[str, int] = {}
        meps: dict[str, MepRanges] = {}
        for refused in of_feeders:
            for (reason, _source), ranges in refused._meps.items():
                fragments[reason] = fragments.get(reason, 0) + ranges.count
                union = meps.setdefault(reason, MepRanges())
                for first, last in ranges.ranges():
                    union.add(first, last)
        return {str(reason): RefusedCount(n, meps[reason].count) for reason, n in fragments.items()}
