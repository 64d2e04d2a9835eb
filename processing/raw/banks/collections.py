"""The sources of each event with their banks, and the numbers of the event: bounds, shapes and units."""

import numpy as np

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import U32, Collection, Column, Placement, Record, Role, SharedTypes
from hltnode.processing.raw.readout import RawBankType
from hltnode.protocol.raw_data.bank_types import BankType

MAX_SOURCES = 1 << 16
"""Source ids have 16 bits, and a MEP has one MFP of a source."""

SOURCE_BANK = Record(
    "source_bank",
    np.dtype([("source", "<u2"), ("type", "<u2"), ("size", "<u2"), ("version", "u1"), ("subdetector", "u1")]),
    {
        "source": "source id",
        "type": "no_bank without a bank, broken_bank for one that reaches beyond its MFP",
        "size": "bytes",
        "subdetector": "top five bits of the source id",
    },
)
"""A source in an event, with its bank."""

raw_bank_types = SharedTypes(
    __file__,
    "raw_bank_types",
    records=(SOURCE_BANK,),
    sizes={
        "several_banks": int(RawBankType.SEVERAL_BANKS),
        "board_error": int(RawBankType.BOARD_ERROR),
        "odin_bank": int(BankType.ODIN),
    },
)

source_offset = Column(name="sources.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True)
"""Prefix sum of the numbers of sources."""
# Each source of an event has a fragment in the batch.
sources = Collection(
    "sources",
    capacity=lambda limits: limits.fragments,
    placement=Placement(offsets=source_offset),
    max_per_event=MAX_SOURCES,
)
source_count = sources.per_event("count", U32)
"""Number of sources in the MEP of each event; a source may have no bank in the event."""
source_bank = sources.column("bank", SOURCE_BANK)
"""The sources of each event in ascending order."""

banks = Collection("banks", capacity=lambda limits: limits.fragments)
bank_count = banks.per_event("count", U32, role=Role.OUTPUT)
"""Number of banks of each event, broken ones included."""
error_banks = Collection("error_banks", capacity=lambda limits: limits.fragments)
error_bank_count = error_banks.per_event("count", U32, role=Role.OUTPUT)
"""Number of broken banks and of banks of error types."""
event_bytes = events.per_event("bank_bytes", U32)
"""Bytes of the banks of each event, without headers and padding."""
largest_bank = events.per_event("largest_bank", U32)
"""Bytes of the largest bank of each event."""
event_number = events.per_event("number", U32, width=2)
"""[event][2]: low and high word of the number of the event in its run."""
