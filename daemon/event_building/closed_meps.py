"""MEP ids that are no longer accepted: closed, finished earlier, or revoked (no I/O, no clock)."""

from collections.abc import Iterable

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.mep_ranges import MepRanges


class ClosedMeps:
    """The MEPs of a run that are closed, finished by an earlier session, or assigned to another node.

    Ids from `floor` to `floor + span - 1` are accepted.
    """

    def __init__(
        self,
        span: int,
        floor: int = 0,
        done: Iterable[tuple[int, int]] = (),
        revoked: Iterable[tuple[int, int]] = (),
    ) -> None:
        self.span = span
        self.floor = floor
        """All MEP ids below this one are acknowledged to the feeders."""
        # Ring of closed ids: entry mep % span holds the id. Accepted ids lie in [floor, floor + span), so two of them
        # never share an entry. A flat list needs no allocation for each MEP.
        self._closed_id = [-1] * span
        # The sources that had arrived, of MEPs in the ring that were closed incomplete: most MEPs need no entry.
        self._sources_of: dict[int, int] = {}
        self._done = MepRanges(done)
        self._revoked = MepRanges(revoked)

    def refusal(self, mep: int, source_bit: int) -> RejectReason | None:
        """The reason to refuse a fragment of a MEP that is not open, or None if the MEP may be opened."""
        i = mep % self.span
        if self._closed_id[i] == mep:
            sources = self._sources_of.get(mep)
            has_arrived = sources is None or sources & source_bit
            return RejectReason.DUPLICATE if has_arrived else RejectReason.LATE
        if mep < self.floor:
            return RejectReason.LATE
        if mep in self._done:
            return RejectReason.DUPLICATE
        if mep in self._revoked:
            return RejectReason.REVOKED
        return None if mep < self.floor + self.span else RejectReason.NO_CREDIT

    def is_closed(self, mep: int) -> bool:
        """True if this session has closed the MEP and it was not revoked later."""
        return self._closed_id[mep % self.span] == mep

    def close(self, mep: int, sources: int | None = None) -> None:
        """Note a closed MEP; `sources` is the bit mask of the sources that had arrived, None for all."""
        i = mep % self.span
        if self._sources_of:
            self._sources_of.pop(self._closed_id[i], None)
        self._closed_id[i] = mep
        if sources is not None:
            self._sources_of[mep] = sources

    def raise_floor(self, floor: int) -> None:
        """Note that all MEP ids below this one are acknowledged to the feeders."""
        if floor > self.floor:
            self.floor = floor
            self._revoked.discard(0, floor - 1)

    def revoke(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Refuse these (first, last) ranges: they are assigned to another node."""
        revoked = MepRanges(ranges)
        for first, last in revoked.ranges():
            self._done.discard(first, last)
            self._revoked.add(first, last)
        for i, mep in enumerate(self._closed_id):
            if mep >= 0 and mep in revoked:
                self._closed_id[i] = -1
                self._sources_of.pop(mep, None)

    def give_back(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Accept these revoked (first, last) ranges: they are assigned to this node again."""
        for first, last in ranges:
            self._revoked.discard(first, last)
