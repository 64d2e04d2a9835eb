"""raw_list_banks: the banks of each event, their sizes, number and time of the event, and flags for what is odd."""

from hltnode.processing.algorithms.event_times import time_count, time_ns
from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.raw.banks.collections import (
    bank_count,
    error_bank_count,
    event_bytes,
    event_number,
    largest_bank,
    source_bank,
    source_count,
)
from hltnode.protocol.raw_data.bank_types import NO_BANK, USER_TYPES

MIN_BANKS = 1
MAX_BANK_BYTES = 32768
"""Half of the largest bank that can be written."""

list_banks = Algorithm.beside(
    __file__,
    prefix="raw",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(raw_banks, source_count),
    updates=(event_flags,),
    writes=(
        *(source_bank, bank_count, error_bank_count, event_bytes, largest_bank, event_number),
        *(time_count, time_ns),
    ),
    constants={
        "min_banks": MIN_BANKS,
        "max_bank_bytes": MAX_BANK_BYTES,
        "first_known_type": USER_TYPES[0],
        "last_known_type": USER_TYPES[-1],
        "number_type": NO_BANK,
        "number_offset": 0,
        "number_bytes": 8,
    },
    allowed={"time_bytes": range(1, 9), "time_divisor": range(1, 1 << 32)},
    added={"time_type": NO_BANK, "time_offset": 0, "time_bytes": 8, "time_unit_ns": 1, "time_divisor": 1},
)
"""min_banks: an event with fewer banks has the flag missing_banks. max_bank_bytes: a larger bank has large_bank.
first_known_type, last_known_type: other types have unknown_type, besides ODIN, error types and number_type.

number_type: type of the bank with the number of the event, a little-endian integer of `number_bytes` (1 to 8) at byte
`number_offset`; 255: the number in the headers of the MFPs. Of several banks the one of the lowest source id counts.

time_type: type of the bank with the time of the event, a little-endian integer of `time_bytes` at byte `time_offset`;
255: events have no time. `time_divisor` units of it are `time_unit_ns` ns. For ODIN: type 16, offset 8, unit 1000.
"""
