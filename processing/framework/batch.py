"""The batch: whole MFPs as they came from the wire, and the small tables through which kernels read them.

The wire format is the device format (design.md 2.4). The layout of the tables stands also in kernels/batch/batch.cuh.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag

MFP_ALIGNMENT = 8
"""Bytes. MFPs start at multiples of this inside a batch, so that their headers can be read as words."""

N_SUBDETECTORS = 32
"""The top five bits of a source id (formats.md B2)."""

BATCH_HEADER = np.dtype([("n_events", "<u4"), ("n_rows", "<u4"), ("n_meps", "<u4"), ("n_fragments", "<u4")])
MFP_ROW = np.dtype(
    [
        ("data_offset", "<u4"),
        ("source_id", "<u4"),
        ("fragment_base", "<u4"),
        ("n_fragments", "<u4"),
        ("version", "<u4"),
        ("packet_size", "<u4"),
    ]
)
EVENT_ROW = np.dtype([("mep", "<u4"), ("index", "<u4")])
ROW_RANGE = np.dtype([("first", "<u4"), ("count", "<u4")])


def line_words(n_lines: int) -> int:
    """32-bit words that hold one bit for each line."""
    return -(-n_lines // 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The most that one batch may hold. Every buffer of a slot is allocated once from these numbers."""

    events: int = 1024
    meps: int = 256
    input_bytes: int = 16 << 20
    rows: int = 65536
    """MFPs in the batch, all MEPs together."""
    lines: int = 64
    """Selection lines of the menu; an engine is made for exactly as many as its trigger configuration has."""

    @property
    def line_words(self) -> int:
        """Words of 32 decisions that each event has: line i is bit i % 32 of word i // 32."""
        return line_words(self.lines)

    @property
    def fragments(self) -> int:
        """An MFP spends a type byte and a size word on each fragment (formats.md B3)."""
        return self.input_bytes // 3

    @property
    def velo_clusters(self) -> int:
        """A retina cluster takes 4 bytes; a super-pixel takes 4 bytes and holds 1.0 clusters on average."""
        return self.input_bytes // 4

    @property
    def velo_tracks(self) -> int:
        """A track takes at least three clusters; search_by_triplet gives an event half as many places as clusters."""
        return self.velo_clusters // 2


@dataclass(frozen=True, slots=True)
class MepInBatch:
    """One MEP whose MFPs lie in the input of a workspace.

    `fragments` holds (source id, byte offset, bytes) of each MFP, offsets being multiples of MFP_ALIGNMENT.
    """

    n_events: int
    fragments: Sequence[tuple[int, int, int]]
    flags: EventFlag = field(default=EventFlag(0))


@dataclass(frozen=True, slots=True)
class BatchTables:
    """Views of the tables in the pinned input of a workspace."""

    header: NDArray[np.void]
    mfp_rows: NDArray[np.void]
    mep_rows: NDArray[np.void]
    event_rows: NDArray[np.void]
    event_flags: NDArray[np.uint32]

    def fill(self, meps: Sequence[MepInBatch], data: NDArray[np.uint8]) -> None:
        """Write the tables of a batch. The MFPs in `data` have been validated by protocol.mfp.

        Raises ValueError where the batch exceeds the limits that the tables were allocated for.
        """
        n_events = sum(mep.n_events for mep in meps)
        n_rows = sum(len(mep.fragments) for mep in meps)
        if n_events > len(self.event_rows) or n_rows > len(self.mfp_rows) or len(meps) > len(self.mep_rows):
            raise ValueError(
                f"a batch of {n_events} events, {n_rows} MFPs and {len(meps)} MEPs exceeds the limits of "
                f"{len(self.event_rows)}, {len(self.mfp_rows)} and {len(self.mep_rows)}"
            )
        event = row = fragment = 0
        for index, mep in enumerate(meps):
            last_event = event + mep.n_events
            self.event_rows["mep"][event:last_event] = index
            self.event_rows["index"][event:last_event] = np.arange(mep.n_events, dtype=np.uint32)
            self.event_flags[event:last_event] = int(mep.flags)
            event = last_event
            if mep.fragments:
                row, fragment = self._fill_rows(index, mep, data, row, fragment)
            else:
                self.mep_rows[index] = 0
        self.header[0] = (n_events, n_rows, len(meps), fragment)

    def _fill_rows(
        self, index: int, mep: MepInBatch, data: NDArray[np.uint8], row: int, fragment: int
    ) -> tuple[int, int]:
        places = np.array(mep.fragments, dtype=np.int64)
        places = places[np.argsort(places[:, 0], kind="stable")]
        source_ids, offsets, sizes = places.T
        count = len(places)
        rows = self.mfp_rows[row : row + count]
        rows["data_offset"] = offsets
        rows["source_id"] = source_ids
        rows["fragment_base"] = fragment + np.arange(count, dtype=np.uint32) * np.uint32(mep.n_events)
        rows["n_fragments"] = mep.n_events
        rows["version"] = data[offsets + 19]
        rows["packet_size"] = sizes
        subdetectors = source_ids >> 11
        counts = np.bincount(subdetectors, minlength=N_SUBDETECTORS)
        self.mep_rows["count"][index] = counts
        self.mep_rows["first"][index] = row + np.cumsum(counts) - counts
        return row + count, fragment + count * mep.n_events
