"""Columns of hits and of objects of a batch, copied back from the device."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.offline.arrays import Int64Array, Mask


@dataclass(frozen=True, slots=True)
class Hits:
    """The ids of all hits of a detector; those of event e are ids[first[e]] to ids[first[e] + count[e] - 1]."""

    first: Int64Array
    count: Int64Array
    ids: NDArray[np.uint32]

    @classmethod
    def read(cls, workspace: Workspace, offset: Column, count: Column, ids: Column) -> Self:
        # Buffers have room for many more elements than most events have: only the used part is copied.
        n_events = workspace.n_events
        offsets = workspace.fetch(offset.name, n_events + 1).astype(np.int64)
        counts = workspace.fetch(count.name, n_events).astype(np.int64)
        return cls(offsets[:-1], counts, workspace.fetch(ids.name, int(offsets[-1])))

    def of_event(self, event: int) -> NDArray[np.uint32]:
        return self.ids[self.first[event] : self.first[event] + self.count[event]]

    def of_tracks(self, event: Int64Array, hits: NDArray[np.uint16], used: Mask) -> NDArray[np.uint32]:
        """The ids of the hits of tracks, u32[n, width]; 0 where a place is not used."""
        place = np.where(used, hits.astype(np.int64) + self.first[event][:, None], 0)
        ids = self.ids if len(self.ids) else np.zeros(1, np.uint32)
        return np.where(used, ids[place], np.uint32(0)).astype(np.uint32)


class Objects:
    """The objects of a collection, one row each: `event` of each, and its columns."""

    def __init__(self, workspace: Workspace, collection: Collection, count: Column) -> None:
        n = workspace.fetch(count.name, workspace.n_events).astype(np.int64)
        self.event = np.repeat(np.arange(len(n)), n)
        self.first_row = np.cumsum(n) - n
        self._place = np.arange(len(self.event)) + np.repeat(workspace.first(collection) - self.first_row, n)
        self._end = int(self._place.max(initial=-1)) + 1
        self._workspace = workspace

    def __call__(self, column: Column) -> NDArray[Any]:
        """[n], or [n, width]."""
        content = self._workspace.fetch(column.name, self._end * column.width)
        chosen: NDArray[Any] = content.reshape(-1, column.width)[self._place]
        return chosen[:, 0] if column.width == 1 else chosen
