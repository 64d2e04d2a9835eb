"""Histogram contents of a node, summed over its workspaces, by run and since its start.

A workspace counts over several batches. Its counters are collected about once a second, before it gets a batch of
another run, and at a request while it has no batch. So each count belongs to the run of its event. A batch that the
back end did not finish may be counted in part.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.histograms import HistogramContent, HistogramShape, contents, n_counts

PERIOD_NS = 1_000_000_000
MAX_RUNS = 8
"""Largest number of runs with counts; above it, the counts of the oldest run are dropped."""


class Counting(Protocol):
    """A workspace."""

    def take_histogram_counts(self) -> NDArray[np.uint32]:
        """Counts since the last call; only called while the workspace has no batch."""


class HistogramTally:
    """Counts of all workspaces. `begin` and `end` from one thread, the others from any."""

    def __init__(
        self,
        shapes: Sequence[HistogramShape],
        workspaces: Sequence[Counting],
        clock_ns: Callable[[], int],
        taken: Callable[[int, NDArray[np.uint32]], None] = lambda _run, _counts: None,
    ) -> None:
        """taken: called with a run and its new counts, in any thread, one call at a time."""
        self.shapes = tuple(shapes)
        self._workspaces = tuple(workspaces)
        self._clock_ns = clock_ns
        self._note_taken = taken
        self._lock = threading.Lock()
        self._computing: set[int] = set()
        self._untaken: dict[int, int] = {}
        """Run of the uncollected counts of each slot."""
        self._taken_ns = dict.fromkeys(range(len(workspaces)), clock_ns())
        self._total = np.zeros(n_counts(self.shapes), np.uint64)
        self._runs: dict[int, NDArray[np.uint64]] = {}
        self.run: int | None = None
        """The run of the last batch."""

    def begin(self, slot: int, run: int) -> None:
        """Called before a slot gets a batch."""
        if not self.shapes:
            return
        with self._lock:
            if self._untaken.get(slot, run) != run:
                self._take(slot)
            self._computing.add(slot)

    def end(self, slot: int, run: int) -> None:
        """Called after the batch of a slot ended."""
        if not self.shapes:
            return
        with self._lock:
            self._computing.discard(slot)
            self._untaken[slot] = self.run = run
            if self._clock_ns() - self._taken_ns[slot] >= PERIOD_NS:
                self._take(slot)

    def collect(self) -> None:
        """Take the counts of all workspaces without a batch."""
        with self._lock:
            self._take_idle()

    def since_start(self) -> list[HistogramContent]:
        """Counts of all runs of this session."""
        with self._lock:
            self._take_idle()
            return list(contents(self.shapes, self._total))

    def of_run(self, run: int) -> list[HistogramContent] | None:
        """Counts of a run; None if it has none."""
        with self._lock:
            self._take_idle()
            counts = self._runs.get(run)
            return None if counts is None else list(contents(self.shapes, counts))

    @property
    def runs(self) -> tuple[int, ...]:
        """Runs with counts."""
        with self._lock:
            self._take_idle()
            return tuple(self._runs)

    def _take_idle(self) -> None:
        for slot in [slot for slot in self._untaken if slot not in self._computing]:
            self._take(slot)

    def _take(self, slot: int) -> None:
        run = self._untaken.pop(slot)
        counts = self._workspaces[slot].take_histogram_counts()
        self._taken_ns[slot] = self._clock_ns()
        self._total += counts
        if run not in self._runs:
            self._runs[run] = np.zeros_like(self._total)
            for oldest in list(self._runs)[:-MAX_RUNS]:
                del self._runs[oldest]
        self._runs[run] += counts
        self._note_taken(run, counts)
