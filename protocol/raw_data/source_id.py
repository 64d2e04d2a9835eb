"""Source ids: 5 bits of sub-detector, 11 bits of number (docs/formats/source-ids.md)."""

from __future__ import annotations

from hltnode.protocol.errors import BankError, RejectReason

NUMBER_BITS = 11
MAX_NUMBER = (1 << NUMBER_BITS) - 1
ODIN_SUBDETECTOR = 0
"""The sub-detector of ODIN in every chain; the ODIN source is the first of a MEP."""
ODIN_SOURCE = ODIN_SUBDETECTOR << NUMBER_BITS
TRIGGER_SUBDETECTOR = 31
"""The sub-detector of the banks that the trigger writes (reports.HLT1_SOURCE_ID)."""
USER_SUBDETECTORS = range(24, 31)
"""Sub-detectors for the boards of users. No node and no chain of this repository uses them."""


def source_id(subdetector: int, number: int) -> int:
    """The u16 source id of link `number` (0..2047) of `subdetector` (0..31)."""
    if not (0 <= number <= MAX_NUMBER and 0 <= subdetector < 32):
        raise BankError(RejectReason.UNKNOWN_SOURCE, f"no source id for sub-detector {subdetector}, number {number}")
    return subdetector << NUMBER_BITS | number


def subdetector_of(source: int) -> int:
    """Top five bits of a source id: the sub-detector, 0..31."""
    return source >> NUMBER_BITS


def number_of(source: int) -> int:
    """Low eleven bits of a source id."""
    return source & MAX_NUMBER
