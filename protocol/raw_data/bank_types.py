"""Bank types that a node reserves with any chain, and free bank types (docs/formats/bank-types.md)."""

from enum import IntEnum

NO_BANK = 255
"""Fragment type in an MFP if the event has no bank; the size of the fragment is 0. No bank has this type."""


class BankType(IntEnum):
    """Types that a node reads, writes or refuses. All other types pass through unread."""

    ODIN = 16
    HLT_DEC_REPORTS = 17
    TAE_HEADER = 48
    HLT_ROUTING_BITS = 53
    HLT_SEL_REPORTS = 54
    HLT_LUMI_SUMMARY = 56


LIST_TYPES = range(242, 250)
"""Types of the output lists of a chain, one for each list that a node writes (docs/formats/list-banks.md)."""
TIME_WINDOW = 250
"""Type of the bank that describes a window of time (docs/formats/time-windows.md)."""
TYPES_OF_TRIGGER = frozenset(
    {
        BankType.HLT_DEC_REPORTS,
        BankType.HLT_ROUTING_BITS,
        BankType.HLT_SEL_REPORTS,
        BankType.HLT_LUMI_SUMMARY,
        *LIST_TYPES,
        TIME_WINDOW,
    }
)
"""Banks that the node writes into accepted events. In files as input, it drops them."""
TYPES_OF_NODE = TYPES_OF_TRIGGER | {BankType.TAE_HEADER}
"""Types that no board may send: the node writes them itself, or never. An MFP with one of them is refused."""
RESERVED_TYPES = frozenset({*map(int, BankType), *LIST_TYPES, TIME_WINDOW, NO_BANK})
"""Types that boards of any chain must not use for other purposes."""
USER_TYPES = range(192, 240)
"""Types for the boards of users. No node and no chain of this repository uses them."""
