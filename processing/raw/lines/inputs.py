"""The inputs of lines: the event, its banks and its sources."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.raw.banks.collections import (
    bank_count,
    error_bank_count,
    event_bytes,
    event_number,
    largest_bank,
    source_bank,
    source_count,
)
from hltnode.processing.raw.banks.collections import sources as source_collection
from hltnode.processing.raw.banks.flags import LARGE_BANK, MISSING_BANKS, NO_EVENT_NUMBER, NO_EVENT_TIME, UNKNOWN_TYPE
from hltnode.processing.selection.lines.inputs import ColumnField, DerivedField, Input
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.source_id import MAX_NUMBER


def _flagged(mask: int, text: str) -> DerivedField:
    return DerivedField(lambda event: (event.flags & mask) != 0, text)


event = Input(
    "events",
    "the event as a whole",
    {
        "n_sources": ColumnField(source_count, "sources in its MEP, with or without a bank in this event"),
        "n_banks": ColumnField(bank_count, "banks"),
        "n_error_banks": ColumnField(error_bank_count, "banks of error types, and banks that reach beyond their MFP"),
        "bytes": ColumnField(event_bytes, "bytes of all banks"),
        "largest_bank": ColumnField(largest_bank, "bytes of the largest bank"),
        "number": ColumnField(event_number, "number of the event in the run, low 32 bits", element=0),
        "number_high": ColumnField(event_number, "number of the event in the run, high 32 bits", element=1),
        "flags": ColumnField(event_flags, "the flag word"),
        "incomplete": _flagged(EventFlag.INCOMPLETE, "true if the fragment of a source was missing"),
        "missing_banks": _flagged(MISSING_BANKS.mask, "true if it has fewer banks than configured"),
        "no_number": _flagged(NO_EVENT_NUMBER.mask, "true if the configured bank has no number of the event"),
        "no_time": _flagged(NO_EVENT_TIME.mask, "true if the configured bank has no time of the event"),
        "unknown_type": _flagged(UNKNOWN_TYPE.mask, "true if a bank has a type outside of the configured range"),
        "large_bank": _flagged(LARGE_BANK.mask, "true if a bank is larger than configured"),
    },
)

_OF_BANK = {
    "type": ColumnField(source_bank, "bank type; 255 without a bank, 256 if it reaches beyond its MFP", member="type"),
    "version": ColumnField(source_bank, "version of the bank", member="version"),
    "subdetector": ColumnField(source_bank, "top five bits of the source id", member="subdetector"),
}

sources = Input(
    "sources",
    "sources in the MEP of the event, with or without a bank in this event",
    {
        "id": ColumnField(source_bank, "source id", member="source"),
        "number": DerivedField(lambda source: source.id % (MAX_NUMBER + 1), "low eleven bits of the source id"),
        **_OF_BANK,
        "bytes": ColumnField(source_bank, "bytes of its bank; 0 without one", member="size"),
        "has_bank": DerivedField(lambda source: source.type != NO_BANK, "true if it has a bank in this event"),
    },
    collection=source_collection,
    count=source_count,
)

banks = Input(
    "banks",
    "banks of the event",
    {
        "source": ColumnField(source_bank, "source id", member="source"),
        "number": DerivedField(lambda bank: bank.source % (MAX_NUMBER + 1), "low eleven bits of the source id"),
        **_OF_BANK,
        "size": ColumnField(source_bank, "bytes, without header and padding", member="size"),
    },
    collection=source_collection,
    count=source_count,
    where=lambda bank: bank.type != NO_BANK,
)

INPUTS = {"event": event, "banks": banks, "sources": sources}
EVENT_WORDS = (event.candidate().number, event.candidate().number_high)
"""The numbers that scalers hash. The run is not among them: MFPs do not have it."""
USUAL_FIELDS = ("event.*", "banks.source", "banks.type", "banks.size", "decisions.accepted")
