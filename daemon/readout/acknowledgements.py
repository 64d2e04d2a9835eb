"""Which MEPs of which run are done: what the feeders need not send again (no I/O, no clock)."""

from collections.abc import Iterable, Mapping, Set

from hltnode.protocol.transport.mep_ranges import MepRanges

Ranges = tuple[tuple[int, int], ...]


class Acknowledgements:
    """MEPs that are acknowledged, by run: of the current run, and of those that are kept."""

    def __init__(self) -> None:
        self._runs: dict[int, MepRanges] = {}
        self._revoked: set[tuple[int, int]] = set()

    def remember(self, done: Mapping[int, Ranges]) -> None:
        """What earlier sessions of the node have finished, as (first, last) ranges of each run."""
        self._runs.update((run, MepRanges(ranges)) for run, ranges in done.items())

    def runs(self) -> list[int]:
        """The runs of which something is acknowledged."""
        return [run for run, done in self._runs.items() if done]

    def done(self, run: int) -> MepRanges:
        """What is acknowledged of a run; not to be changed."""
        return self._runs.get(run) or MepRanges()

    def ranges(self, run: int, from_mep: int = 0) -> Ranges:
        """(first, last) ranges of a run at or above an id."""
        return tuple(self.done(run).ranges(from_mep))

    def acknowledged_below(self, run: int, below: int) -> None:
        """Every MEP of a run below this id is acknowledged to its feeders."""
        if below > 0:
            self._runs.setdefault(run, MepRanges()).add(0, below - 1)

    def finish(self, run: int, meps: Iterable[int]) -> list[int]:
        """A batch with these MEPs is done; returns those that count, without any that was revoked meanwhile."""
        finished = []
        done = self._runs.setdefault(run, MepRanges())
        for mep in meps:
            if (run, mep) in self._revoked:
                self._revoked.discard((run, mep))
            else:
                done.add(mep)
                finished.append(mep)
        return finished

    def revoke(self, run: int, meps: Iterable[tuple[int, int]], on_their_way: Set[int]) -> None:
        """These (first, last) ranges went to another node; those on their way do not count when they `finish`."""
        done = self._runs.setdefault(run, MepRanges())
        for first, last in meps:
            done.discard(first, last)
        self._revoked.update((run, mep) for mep in on_their_way)

    def forget(self, run: int) -> None:
        """The run is over or closed: nothing of it will be sent again."""
        self._runs.pop(run, None)
        self._revoked = {(of_run, mep) for of_run, mep in self._revoked if of_run != run}
