"""Which MEPs of a run are done, also when the run is left and taken up again (no I/O, no clock)."""

from collections.abc import Iterable, Mapping, Set

from hltnode.daemon.common.mep_ranges import MepRanges

Ranges = tuple[tuple[int, int], ...]


class Acknowledgements:
    """MEPs of the current run that the feeders need not send again, and those of runs that may go on later."""

    def __init__(self) -> None:
        self._now = MepRanges()
        self._earlier: dict[int, Ranges] = {}
        self._revoked: set[int] = set()

    def __contains__(self, mep: int) -> bool:
        return mep in self._now

    def remember(self, done: Mapping[int, Ranges]) -> None:
        """What earlier sessions of the node have finished, as (first, last) ranges of each run."""
        self._earlier = dict(done)

    def earlier(self, run: int) -> Ranges:
        """(first, last) ranges of a run that is not the current one."""
        return self._earlier.get(run, ())

    def begin(self, run: int) -> None:
        """A run becomes the current one, with what was finished of it earlier."""
        self._now = MepRanges(self._earlier.pop(run, ()))

    def acknowledged_below(self, below: int) -> None:
        """Every MEP below this id is acknowledged to the feeders."""
        if below > 0:
            self._now.add(0, below - 1)

    def finish(self, meps: Iterable[int]) -> None:
        """A batch with these MEPs is done; those that were revoked meanwhile are not."""
        for mep in meps:
            if mep in self._revoked:
                self._revoked.discard(mep)
            else:
                self._now.add(mep)

    def revoke(self, meps: Iterable[tuple[int, int]], on_their_way: Set[int]) -> None:
        """These (first, last) ranges went to another node; those on their way do not count when they `finish`."""
        for first, last in meps:
            self._now.discard(first, last)
        self._revoked |= on_their_way

    def ranges(self, from_mep: int = 0) -> Ranges:
        """(first, last) ranges of the current run at or above an id."""
        return tuple(self._now.ranges(from_mep))

    def leave(self, run: int) -> None:
        """The current run stops and may go on later: what is acknowledged now must be known then."""
        self._earlier[run] = self.ranges()

    def forget(self) -> None:
        """There is no current run."""
        self._now = MepRanges()
