"""Limits of what a node can write to its files and read again; the intake refuses what exceeds them.

The compiled checks are in `protocol/written_banks.h` and `protocol/fragment_frame.h`. The table is part of
docs/reference/protocol.md.
"""

from dataclasses import dataclass

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.raw_data.bank_types import TYPES_OF_NODE
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE
from hltnode.protocol.transport.messages import MAX_MEP_ID


@dataclass(frozen=True, slots=True)
class WrittenLimit:
    """A limit: what it bounds, its value, the reason of a refusal, and why a format cannot hold more."""

    of: str
    limit: str
    reason: RejectReason
    because: str


WRITTEN_LIMITS = (
    WrittenLimit(
        "bytes of a fragment",
        f"at most {MAX_PAYLOAD_SIZE}",
        RejectReason.BANK_TOO_LARGE,
        "the length of a raw bank has 16 bits and includes the header of 8 bytes",
    ),
    WrittenLimit(
        "bank type of a fragment",
        f"none of {', '.join(str(int(number)) for number in sorted(TYPES_OF_NODE))}",
        RejectReason.RESERVED_TYPE,
        "the node writes its own banks of these types; a record that begins with type 48 is read as a TAE record",
    ),
    WrittenLimit(
        "MEP id",
        f"at most {MAX_MEP_ID}",
        RejectReason.MALFORMED,
        "the feeder confirms its last MEP with the next id, which has 64 bits too",
    ),
)
"""Every bank of an acknowledged MFP is in the files, bit for bit, if its event is kept."""
