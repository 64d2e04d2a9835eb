"""The readout of boards without detector code: every bank belongs to the source that its id names."""

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum

from hltnode.processing.framework.readout import AUTO
from hltnode.protocol.raw_data.bank_types import TYPES_OF_NODE, USER_TYPES
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import ODIN_SUBDETECTOR, USER_SUBDETECTORS


class RawBankType(IntEnum):
    """Types that this chain names (docs/formats/bank-types.md)."""

    SEVERAL_BANKS = 240
    """Made when a file is read: the source has several banks in the event; the payload is that of the first one."""
    BOARD_ERROR = 241
    """A board may send it in place of data that it could not read out; its bytes are the board's own."""


ERROR_TYPES = frozenset(int(each) for each in RawBankType)
SUBDETECTORS = {
    ODIN_SUBDETECTOR: "TIMING",
    **{number: f"BOARDS {number}" for number in USER_SUBDETECTORS},
}


class RawReadout:
    """Any source id and any bank type; one encoding (framework.readout.Readout)."""

    encodings = (AUTO,)
    subdetectors: Mapping[int, str] = SUBDETECTORS
    bank_types: Mapping[int, str] = {
        **{number: f"USER {number}" for number in USER_TYPES},
        **{int(each): each.name for each in RawBankType},
    }
    truth_types: frozenset[int] = frozenset()
    types_not_read_out: frozenset[int] = TYPES_OF_NODE
    error_type = RawBankType.SEVERAL_BANKS
    error_types = ERROR_TYPES

    def sample_of(self, banks: Sequence[RawBank]) -> None:
        """None: simulated events have no truth."""

    def later_sources(self, sources: Collection[int]) -> Mapping[int, int]:  # noqa: ARG002
        """None: a feeder announces the sources of all events."""
        return {}

    def encoding_of(self, bank_types: Collection[int]) -> str:  # noqa: ARG002
        """The only encoding."""
        return AUTO

    def reads(self, bank_type: int, encoding: str) -> bool:  # noqa: ARG002
        """True for every type."""
        return True

    def source_of(self, bank: RawBank) -> int | None:
        """The source id of the bank; None for the banks that a node writes."""
        return None if bank.type in self.types_not_read_out else bank.source_id


RAW_READOUT = RawReadout()
