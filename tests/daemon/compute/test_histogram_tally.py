"""Counts of histograms are gathered from the workspaces, each to the run of its events."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.compute.histogram_tally import MAX_RUNS, PERIOD_NS, HistogramTally
from hltnode.processing.framework.histograms import HistogramShape

SHAPE = HistogramShape(name="h", bins=2, low=0.0, high=2.0)


class Slot:
    """Returns counts set by the test, and counts the requests."""

    def __init__(self) -> None:
        self.counts = np.zeros(SHAPE.n_counts, np.uint32)
        self.asked = 0

    def count(self, n: int) -> None:
        self.counts[1] += np.uint32(n)

    def take_histogram_counts(self) -> NDArray[np.uint32]:
        self.asked += 1
        counted, self.counts = self.counts, np.zeros_like(self.counts)
        return counted


class Node:
    def __init__(self) -> None:
        self.slots = [Slot(), Slot()]
        self.now_ns = 0
        self.tally = HistogramTally([SHAPE], self.slots, lambda: self.now_ns)

    def batch(self, slot: int, run: int, n: int) -> None:
        self.tally.begin(slot, run)
        self.slots[slot].count(n)
        self.tally.end(slot, run)

    def of_run(self, run: int) -> int:
        contents = self.tally.of_run(run)
        return 0 if contents is None else contents[0].entries


def test_counts_belong_to_the_run_of_their_events() -> None:
    node = Node()
    node.batch(0, 1, 3)
    node.batch(1, 1, 4)
    node.batch(0, 2, 10)
    assert (node.of_run(1), node.of_run(2), node.tally.since_start()[0].entries) == (7, 10, 17)
    assert (node.tally.run, node.tally.runs) == (2, (1, 2))


def test_histograms_of_a_busy_slot_are_read_once_per_second() -> None:
    node = Node()
    for _ in range(1000):
        node.now_ns += PERIOD_NS // 100
        node.batch(0, 1, 1)
    assert node.slots[0].asked == 10
    assert node.of_run(1) == 1000


def test_histograms_of_a_slot_are_not_read_while_it_has_a_batch() -> None:
    node = Node()
    node.batch(0, 1, 5)
    node.tally.begin(0, 1)
    node.slots[0].count(100)
    assert node.of_run(1) == 0
    node.tally.end(0, 1)
    assert node.of_run(1) == 105


def test_the_number_of_kept_runs_is_limited() -> None:
    node = Node()
    for run in range(3 * MAX_RUNS):
        node.batch(0, run, 1)
    assert node.tally.runs == tuple(range(2 * MAX_RUNS, 3 * MAX_RUNS))
    assert node.tally.since_start()[0].entries == 3 * MAX_RUNS
