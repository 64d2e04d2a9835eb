"""Contiguous MDF records of one run in one buffer, as gathering hands them to the writer (no I/O)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.storage.event_files import Row


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """Records of one run.

    data: the bytes of all records. ends: u64[n], end of each record in `data`. meps: u64[n], MEP id of each record;
    records of one MEP are consecutive.
    """

    run: int
    data: memoryview
    ends: NDArray[np.uint64]
    meps: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def nbytes(self) -> int:
        """Bytes of all records."""
        return len(self.data)

    def fitting(self, first: int, nbytes: int) -> int:
        """Number of records from `first` on that fit into `nbytes`."""
        begin = self._begin(first)
        return int(np.searchsorted(self.ends, np.uint64(begin + max(nbytes, 0)), side="right")) - first

    def bytes_of(self, first: int, last: int) -> memoryview:
        """The bytes of the records [first, last)."""
        return self.data[self._begin(first) : self._begin(last)]

    def rows(self, first: int, last: int) -> list[Row]:
        """One row per MEP of the records [first, last), in order."""
        meps = self.meps[first:last]
        changes = np.flatnonzero(meps[1:] != meps[:-1]) + (first + 1)
        rows = []
        before = self._begin(first)
        for begin, end in pairwise((first, *changes.tolist(), last)):
            up_to = self._begin(end)
            rows.append(Row(int(self.meps[begin]), end - begin, up_to - before))
            before = up_to
        return rows

    def without(self, meps: Collection[int]) -> Iterator["RecordBlock"]:
        """Blocks with the records of all MEPs except `meps`."""
        kept = ~np.isin(self.meps, np.fromiter(meps, np.uint64, len(meps)))
        edges = np.flatnonzero(np.diff(np.concatenate(([False], kept, [False])).astype(np.int8)))
        for first, last in edges.reshape(-1, 2).tolist():
            ends = self.ends[first:last] - np.uint64(self._begin(first))
            yield RecordBlock(self.run, self.bytes_of(first, last), ends, self.meps[first:last])

    def records(self) -> Iterator[memoryview]:
        """Yield the bytes of each record."""
        begin = 0
        for end in self.ends.tolist():
            yield self.data[begin:end]
            begin = end

    def _begin(self, record: int) -> int:
        return int(self.ends[record - 1]) if record else 0
