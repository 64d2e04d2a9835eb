"""Threads of the CPU back end take large events first."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from threading import Barrier

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends import _executor
from hltnode.processing.framework.batch import (
    BATCH_HEADER,
    EVENT_ROW,
    FRAGMENT_ROW,
    MFP_ROW,
    N_SUBDETECTORS,
    ROW_RANGE,
)
from hltnode.processing.framework.declaration import Grid

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)
SOURCES = {0: 1, 2: 40, 7: 3}
"""MFPs of some sub-detectors."""


class Batch:
    """The tables of a batch after its fragments are located; `meps` has the bytes of each event in each fragment.

    `numbers`: the rows of the MEPs, in the order of their events; ascending unless given.
    """

    def __init__(self, meps: Sequence[NDArray[np.int64]], numbers: Sequence[int] | None = None) -> None:
        numbers = range(len(meps)) if numbers is None else numbers
        self.n = sum(len(mep) for mep in meps)
        events = np.zeros(self.n, EVENT_ROW.dtype)
        events["mep"] = np.repeat(numbers, [len(mep) for mep in meps])
        events["index"] = np.concatenate([np.arange(len(mep)) for mep in meps])
        n_sources = sum(SOURCES.values())
        ranges = np.zeros((len(meps), N_SUBDETECTORS), ROW_RANGE.dtype)
        rows = np.zeros(len(meps) * n_sources, MFP_ROW.dtype)
        fragments = np.zeros(self.n * n_sources, FRAGMENT_ROW.dtype)
        row = base = 0
        for number, mep in zip(numbers, meps, strict=True):
            for detector, count in SOURCES.items():
                ranges[number, detector] = (row, count)
                for _ in range(count):
                    rows[row]["fragment_base"], rows[row]["n_fragments"] = base, len(mep)
                    fragments["size"][base : base + len(mep)] = mep
                    row, base = row + 1, base + len(mep)
        self._columns = (events, ranges, rows, fragments)

    @property
    def tables(self) -> tuple[int, int, int, int]:
        events, ranges, rows, fragments = (column.ctypes.data for column in self._columns)
        return events, ranges, rows, fragments

    @property
    def order(self) -> list[int]:
        return _executor.event_order(self.tables, self.n)

    def taken(self, threads: int) -> list[int]:
        """Events in the order in which threads take them; the first event of each thread waits for those of the
        others."""
        header = np.zeros(1, BATCH_HEADER.dtype)
        header["n_events"] = self.n
        taken: list[int] = []
        first = Barrier(threads)

        def run(_: object, block: int) -> None:
            taken.append(block)
            if len(taken) <= threads:
                first.wait(60)

        kernel = KERNEL(run)
        address = ctypes.cast(kernel, ctypes.c_void_p).value
        assert address is not None
        parameters = np.zeros(8, np.uint8)
        step = (address, parameters.ctypes.data, int(Grid.EVENTS), 8)
        program = _executor.Program([step], header.ctypes.data, threads=threads, tables=self.tables)
        executor = _executor.Executor(threads)
        executor.run(program)
        before = taken.copy()
        taken.clear()
        first.reset()
        # Data that a batch leaves behind does not change the next one.
        executor.run(program)
        assert sorted(taken) == sorted(before) == list(range(self.n))
        return taken


def meps_with(large: dict[int, int]) -> list[NDArray[np.int64]]:
    """Three MEPs of 20 events with 100 bytes in each fragment; some events have more."""
    sizes = np.full(60, 100)
    for event, size in large.items():
        sizes[event] = size
    return np.split(sizes, 3)


def test_large_events_are_first_and_all_others_keep_their_order() -> None:
    order = Batch(meps_with({59: 20_000, 21: 1_800, 37: 1_500, 5: 50})).order
    # In classes by factors of two of the mean, 485 bytes.
    first = [59, 21, 37]
    assert order == [*first, *(event for event in range(60) if event not in first)]


def test_meps_in_any_order_of_their_rows_keep_their_events() -> None:
    meps = meps_with({59: 20_000, 21: 1_800, 37: 1_500, 5: 50})
    for numbers in ([2, 1, 0], [2, 0, 1], [1, 0, 2]):
        assert Batch(meps, numbers).order == Batch(meps).order


def test_events_of_similar_size_keep_their_order() -> None:
    sizes = np.random.default_rng(1).integers(100, 180, 60)
    assert Batch(np.split(sizes, 3)).order == list(range(60))


def test_without_tables_events_are_as_they_came() -> None:
    assert _executor.event_order((0, 0, 0, 0), 5) == [0, 1, 2, 3, 4]


def test_threads_take_the_events_in_that_order_and_one_thread_as_they_came() -> None:
    batch = Batch(meps_with({59: 20_000, 21: 1_800, 37: 1_500}))
    assert sorted(batch.taken(3)[:3]) == [21, 37, 59]
    assert batch.taken(1) == list(range(60))


@pytest.mark.parametrize("seed", range(5))
def test_each_event_is_taken_once_whatever_their_sizes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    largest = 2 ** rng.integers(1, 16)
    batch = Batch([rng.integers(0, largest, int(rng.integers(1, 40))) for _ in range(4)])
    assert sorted(batch.order) == list(range(batch.n))
    batch.taken(2)


def test_tables_that_are_not_complete_are_refused() -> None:
    with pytest.raises(ValueError, match="not complete"):
        _executor.event_order((1, 0, 0, 0), 1)
