"""Bank types that a node reserves whatever its chain, and those that are free (docs/formats/bank-types.md)."""

from enum import IntEnum

NO_BANK = 255
"""The type of a fragment in an MFP whose event has no bank; the size of the fragment is 0. No bank has this type."""


class BankType(IntEnum):
    """Types that a node itself reads, writes or refuses. Every other value passes through unread."""

    ODIN = 16
    HLT_DEC_REPORTS = 17
    TAE_HEADER = 48
    HLT_ROUTING_BITS = 53
    HLT_SEL_REPORTS = 54
    HLT_LUMI_SUMMARY = 56


TYPES_OF_TRIGGER = frozenset(
    {BankType.HLT_DEC_REPORTS, BankType.HLT_ROUTING_BITS, BankType.HLT_SEL_REPORTS, BankType.HLT_LUMI_SUMMARY}
)
"""Banks that the node writes into the events that it keeps. Banks of these types that arrive are dropped there."""
RESERVED_TYPES = frozenset({*map(int, BankType), NO_BANK})
"""Types that no board may use for anything else, in any chain."""
USER_TYPES = range(192, 240)
"""Types for the boards of users. Neither a node nor a chain of this repository ever names one of them."""
