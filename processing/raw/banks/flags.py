"""Flags that this chain adds to those of the framework."""

from hltnode.processing.framework.collections import SharedTypes
from hltnode.processing.framework.flags import ChainFlag, FlagKind

MISSING_BANKS = ChainFlag(
    name="missing_banks",
    bit=16,
    text="The event has fewer banks than the trigger configuration asks for, or none.",
)
NO_EVENT_NUMBER = ChainFlag(
    name="no_event_number",
    bit=17,
    text=(
        "The bank with the number of the event, which the trigger configuration names, is missing or too short. The "
        "event has the number in the headers of its MFPs."
    ),
)
UNKNOWN_TYPE = ChainFlag(
    name="unknown_type",
    bit=18,
    text="A bank has a type outside of the range that the trigger configuration names.",
    kind=FlagKind.NOTE,
)
LARGE_BANK = ChainFlag(
    name="large_bank",
    bit=19,
    text="A bank has more bytes than the trigger configuration expects.",
    kind=FlagKind.NOTE,
)
NO_EVENT_TIME = ChainFlag(
    name="no_event_time",
    bit=20,
    text=(
        "The bank with the time of the event, which the trigger configuration names, is missing or too short, or its "
        "time in ns exceeds 64 bits. The event has no time."
    ),
    kind=FlagKind.NOTE,
)

raw_flag_types = SharedTypes(
    __file__, "raw_flags", flags=(MISSING_BANKS, NO_EVENT_NUMBER, UNKNOWN_TYPE, LARGE_BANK, NO_EVENT_TIME)
)
