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

from hltnode.processing.framework.backends._executor import TableWriter
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


class BatchTables:
    """Writes the tables in the pinned input of a workspace. Compiled code does it (backends/batch_tables.cpp).

    Args:
        header, mfp_rows, mep_rows, event_rows, event_flags: views of the tables, contiguous.
        max_events_per_mep: largest number of events of a MEP.
    """

    def __init__(
        self,
        header: NDArray[np.void],
        mfp_rows: NDArray[np.void],
        mep_rows: NDArray[np.void],
        event_rows: NDArray[np.void],
        event_flags: NDArray[np.uint32],
        max_events_per_mep: int = MAX_EVENTS_PER_MEP,
    ) -> None:
        self.header = header
        self.mfp_rows = mfp_rows
        self.mep_rows = mep_rows
        self.event_rows = event_rows
        self.event_flags = event_flags
        self.writer = TableWriter(
            header=header.ctypes.data,
            mfp_rows=mfp_rows.ctypes.data,
            mep_rows=mep_rows.ctypes.data,
            event_rows=event_rows.ctypes.data,
            event_flags=event_flags.ctypes.data,
            rows=len(mfp_rows),
            meps=len(mep_rows),
            events=min(len(event_rows), len(event_flags)),
            max_events_per_mep=max_events_per_mep,
        )

    def fill(self, meps: Sequence[MepInBatch], data: NDArray[np.uint8]) -> int:
        """Write the tables of a batch. The MFPs in `data` have been validated by protocol.mfp.

        Returns the number of bytes of `data` that they use. Raises ValueError if the batch exceeds the limits of the
        tables, or a MFP is outside of `data`.
        """
        return self.writer.fill([(mep.n_events, mep.flags, mep.places) for mep in meps], data)
