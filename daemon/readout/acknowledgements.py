"""Acknowledged MEPs by run: feeders need not send them again (no I/O, no clock)."""

from collections.abc import Iterable, Mapping, Set

from hltnode.protocol.transport.mep_ranges import MepRanges

Ranges = tuple[tuple[int, int], ...]


class Acknowledgements:
    """The acknowledged MEPs of the current run and of the kept runs."""

    def __init__(self) -> None:
        self._runs: dict[int, MepRanges] = {}
        self._revoked: set[tuple[int, int]] = set()

    def remember(self, done: Mapping[int, Ranges]) -> None:
        """Add the MEPs that earlier sessions of the node have finished, as (first, last) ranges of each run."""
        self._runs.update((run, MepRanges(ranges)) for run, ranges in done.items())

    def runs(self) -> list[int]:
        """The runs with acknowledged MEPs."""
        return [run for run, done in self._runs.items() if done]

    def done(self, run: int) -> MepRanges:
        """The acknowledged MEPs of a run. The caller must not change them."""
        return self._runs.get(run) or MepRanges()

    def ranges(self, run: int, from_mep: int = 0) -> Ranges:
        """The acknowledged (first, last) ranges of a run, from an id on."""
        return tuple(self.done(run).ranges(from_mep))

    def acknowledged_below(self, run: int, below: int) -> None:
        """Note that all MEPs of a run below this id are acknowledged to its feeders."""
        if below > 0:
            self._runs.setdefault(run, MepRanges()).add(0, below - 1)

    def finish(self, run: int, meps: Iterable[int]) -> list[int]:
        """Note the MEPs of a finished batch; returns those that were not revoked meanwhile."""
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
        """Remove (first, last) ranges that another node gets. MEPs `on_their_way` do not count in a later `finish`."""
        done = self._runs.setdefault(run, MepRanges())
        for first, last in meps:
            done.discard(first, last)
        self._revoked.update((run, mep) for mep in on_their_way)

    def forget(self, run: int) -> None:
        """Remove a run that is over or closed: its feeders send nothing again."""
        self._runs.pop(run, None)
        self._revoked = {(of_run, mep) for of_run, mep in self._revoked if of_run != run}
