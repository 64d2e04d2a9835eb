"""The batch: unchanged MFPs from the wire, and small tables through which kernels read them.

The wire format is the device format: kernels find the fragments of their event through offsets, so the host transposes
nothing. This module declares the tables for both languages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import (
    U8,
    U32,
    Collection,
    Column,
    Record,
    Role,
    SharedTypes,
    View,
)
from hltnode.processing.framework.flags import FLAGS_OF_HOST, EventFlag
from hltnode.processing.framework.limits import MAX_EVENTS_PER_MEP
from hltnode.protocol.raw_data.bank_types import NO_BANK

MFP_ALIGNMENT = 8
"""MFPs start at multiples of this number of bytes in a batch, so that kernels can read headers as words."""

N_SUBDETECTORS = 32
"""The top five bits of a source id."""

BROKEN_BANK = 256
"""The type that kernels give a fragment that reaches beyond its MFP. No bank has it: types of banks have eight bits."""

BATCH_HEADER = Record(
    "batch_header",
    np.dtype([("n_events", "<u4"), ("n_rows", "<u4"), ("n_meps", "<u4"), ("n_fragments", "<u4")]),
    {"n_rows": "MFPs in the batch", "n_fragments": "sum of n_fragments over the rows"},
)
MFP_ROW = Record(
    "mfp_row",
    np.dtype(
        [
            ("data_offset", "<u4"),
            ("source_id", "<u4"),
            ("fragment_base", "<u4"),
            ("n_fragments", "<u4"),
            ("version", "<u4"),
            ("packet_size", "<u4"),
            ("first_event", "<u4"),
        ]
    ),
    {
        "data_offset": "byte offset of the MFP header in the raw input",
        "source_id": "top 5 bits sub-detector, low 11 bits number",
        "fragment_base": "number of its first fragment",
        "n_fragments": "events of its MEP",
        "version": "bank version of its fragments",
        "packet_size": "bytes, header included",
        "first_event": "number of the first event of its MEP in the batch",
    },
)
"""One MFP of the batch. Rows of one MEP are adjacent, sorted by source id."""
EVENT_ROW = Record("event_row", np.dtype([("mep", "<u4"), ("index", "<u4")]), {"index": "in its MEP"})
"""Place of an event of the batch."""
FRAGMENT_ROW = Record("fragment_row", np.dtype([("offset", "<u4"), ("size", "<u2"), ("type", "<u2")]))
"""One fragment of the batch: start in the raw input, bytes, type.

Decoders need all fields at once, and one memory access loads them.
"""
ROW_RANGE = Record("row_range", np.dtype([("first", "<u4"), ("count", "<u4")]))
"""Rows of one sub-detector in one MEP."""

_KernelFlag = IntFlag("_KernelFlag", [(str(flag.name), int(flag)) for flag in EventFlag if not flag & FLAGS_OF_HOST])  # type: ignore[misc]
batch_types = SharedTypes(
    __file__,
    "batch_types",
    records=(BATCH_HEADER, MFP_ROW, EVENT_ROW, FRAGMENT_ROW, ROW_RANGE),
    enums={"event_flag": _KernelFlag},
    sizes={
        "n_subdetectors": N_SUBDETECTORS,
        "no_bank": NO_BANK,
        "broken_bank": BROKEN_BANK,
    },
)
"""no_bank is the type of an absent fragment, broken_bank that of a fragment that extends beyond its MFP."""

batch_header = Column(name="batch", dtype=BATCH_HEADER.dtype, record=BATCH_HEADER, bound=lambda _: 1, role=Role.INPUT)
"""Read by every kernel."""
raw_input = Column(name="input.bytes", dtype=U8, bound=lambda limits: limits.input_bytes, role=Role.INPUT)
mfp_rows = Column(
    name="input.mfp_rows", dtype=MFP_ROW.dtype, record=MFP_ROW, bound=lambda limits: limits.rows, role=Role.INPUT
)
mep_rows = Column(
    name="input.mep_rows",
    dtype=ROW_RANGE.dtype,
    record=ROW_RANGE,
    bound=lambda limits: limits.meps,
    width=N_SUBDETECTORS,
    role=Role.INPUT,
)
event_rows = Column(
    name="input.event_rows",
    dtype=EVENT_ROW.dtype,
    record=EVENT_ROW,
    bound=lambda limits: limits.events,
    of_event=True,
    role=Role.INPUT,
)

events = Collection("events", capacity=lambda limits: limits.events)
event_flags = events.per_event("flags", U32, role=Role.INPUT | Role.OUTPUT)
"""Bits of Chain.flag_table."""

BATCH_INPUTS = (batch_header, raw_input, mfp_rows, mep_rows, event_rows, event_flags)
"""Columns that the host writes for every batch, for any sequence."""

fragments = Collection("fragments", capacity=lambda limits: limits.fragments)
fragment_rows = fragments.column("rows", FRAGMENT_ROW)

raw_banks = View(
    "raw_banks",
    (raw_input, mfp_rows, mep_rows, event_rows, fragment_rows),
    Path(__file__),
)
"""Tables by which a decoder finds the banks of its event; framework/device/raw_banks.cuh reads them."""


@dataclass(frozen=True, slots=True)
class MepInBatch:
    """One MEP with its MFPs in the input of a workspace.

    `fragments` holds (source id, byte offset, bytes) of each MFP; offsets are multiples of MFP_ALIGNMENT. An array
    i64[n, 3] needs no Python loop over MFPs.
    """

    n_events: int
    fragments: Sequence[tuple[int, int, int]] | NDArray[np.int64]
    flags: EventFlag = field(default=EventFlag(0))

    @property
    def places(self) -> NDArray[np.int64]:
        """`fragments` as an array."""
        return np.asarray(self.fragments, dtype=np.int64).reshape(-1, 3)


@dataclass(frozen=True, slots=True)
class BatchTables:
    """Views of the tables in the pinned input of a workspace."""

    header: NDArray[np.void]
    mfp_rows: NDArray[np.void]
    mep_rows: NDArray[np.void]
    event_rows: NDArray[np.void]
    event_flags: NDArray[np.uint32]
    max_events_per_mep: int = MAX_EVENTS_PER_MEP

    def fill(self, meps: Sequence[MepInBatch], data: NDArray[np.uint8]) -> None:
        """Write the tables of a batch. The MFPs in `data` have been validated by protocol.mfp.

        Raises ValueError if the batch exceeds the limits of the tables.
        """
        n_events = sum(mep.n_events for mep in meps)
        n_rows = sum(len(mep.fragments) for mep in meps)
        if n_events > len(self.event_rows) or n_rows > len(self.mfp_rows) or len(meps) > len(self.mep_rows):
            raise ValueError(
                f"a batch of {n_events} events, {n_rows} MFPs and {len(meps)} MEPs exceeds the limits of "
                f"{len(self.event_rows)}, {len(self.mfp_rows)} and {len(self.mep_rows)}"
            )
        if (largest := max((mep.n_events for mep in meps), default=0)) > self.max_events_per_mep:
            raise ValueError(f"a MEP of {largest} events exceeds the limit of {self.max_events_per_mep}")
        event = row = fragment = 0
        for index, mep in enumerate(meps):
            last_event = event + mep.n_events
            self.event_rows["mep"][event:last_event] = index
            self.event_rows["index"][event:last_event] = np.arange(mep.n_events, dtype=np.uint32)
            self.event_flags[event:last_event] = int(mep.flags)
            event = last_event
            if len(mep.fragments):
                first_event = last_event - mep.n_events
                row, fragment = self._fill_rows(index, mep, data, row, fragment, first_event)
            else:
                self.mep_rows[index] = 0
        self.header[0] = (n_events, n_rows, len(meps), fragment)

    def _fill_rows(
        self, index: int, mep: MepInBatch, data: NDArray[np.uint8], row: int, fragment: int, first_event: int
    ) -> tuple[int, int]:
        places = mep.places
        if len(places) == 1:
            return self._fill_row(index, mep.n_events, places[0].tolist(), data, row, fragment, first_event)
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
        rows["first_event"] = first_event
        subdetectors = source_ids >> 11
        counts = np.bincount(subdetectors, minlength=N_SUBDETECTORS)
        self.mep_rows["count"][index] = counts
        self.mep_rows["first"][index] = row + np.cumsum(counts) - counts
        return row + count, fragment + count * mep.n_events

    def _fill_row(
        self, index: int, n_events: int, place: list[int], data: NDArray[np.uint8], row: int, fragment: int, first: int
    ) -> tuple[int, int]:
        """The only MFP of a MEP: array operations for one row would take most of the time of a short batch."""
        source, offset, size = place
        self.mfp_rows[row] = (offset, source, fragment, n_events, int(data[offset + 19]), size, first)
        subdetector = source >> 11
        ranges = self.mep_rows[index]
        firsts, counts = ranges["first"], ranges["count"]
        firsts[: subdetector + 1] = row
        firsts[subdetector + 1 :] = row + 1
        counts[:] = 0
        counts[subdetector] = 1
        return row + 1, fragment + n_events
