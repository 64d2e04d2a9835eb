"""Which MEP ids are settled: what still comes of them is refused (no I/O, no clock)."""

from collections.abc import Iterable

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.mep_ranges import MepRanges


class ClosedMeps:
    """The MEPs of a run that are closed, finished by an earlier session, or assigned to another node.

    Ids are taken from `span` ids from the floor on.
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
        """Every MEP id below it is acknowledged to the feeders."""
        # Ring of closed ids: entry mep % size holds the id and the sources that had come. Ids are only taken from
        # [floor, floor + size), so no two of them share an entry. Two flat lists: nothing is allocated per MEP.
        self._closed_id = [-1] * span
        self._closed_sources = [0] * span
        self._done = MepRanges(done)
        self._revoked = MepRanges(revoked)

    def refusal(self, mep: int, source_bit: int) -> RejectReason | None:
        """Why a fragment of a MEP that is not open is refused, or None if its id may be opened."""
        i = mep % self.span
        if self._closed_id[i] == mep:
            return RejectReason.DUPLICATE if self._closed_sources[i] & source_bit else RejectReason.LATE
        if mep < self.floor:
            return RejectReason.LATE
        if mep in self._done:
            return RejectReason.DUPLICATE
        if mep in self._revoked:
            return RejectReason.REVOKED
        return None if mep < self.floor + self.span else RejectReason.NO_CREDIT

    def is_closed(self, mep: int) -> bool:
        """True if a MEP was closed by this session, and not revoked since."""
        return self._closed_id[mep % self.span] == mep

    def close(self, mep: int, sources: int) -> None:
        """A MEP is closed; `sources` are the bits of those that had come."""
        i = mep % self.span
        self._closed_id[i] = mep
        self._closed_sources[i] = sources

    def raise_floor(self, floor: int) -> None:
        """Every MEP id below this one is acknowledged to the feeders."""
        if floor > self.floor:
            self.floor = floor
            self._revoked.discard(0, floor - 1)

    def revoke(self, ranges: Iterable[tuple[int, int]]) -> None:
        """These (first, last) ranges are assigned to another node."""
        revoked = MepRanges(ranges)
        for first, last in revoked.ranges():
            self._done.discard(first, last)
            self._revoked.add(first, last)
        for i, mep in enumerate(self._closed_id):
            if mep >= 0 and mep in revoked:
                self._closed_id[i] = -1

    def give_back(self, ranges: Iterable[tuple[int, int]]) -> None:
        """These (first, last) ranges were revoked, and are assigned to this node again."""
        for first, last in ranges:
            self._revoked.discard(first, last)
