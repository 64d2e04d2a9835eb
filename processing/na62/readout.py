"""The readout of NA62's RICH: one source, whose bank has all hits of an event."""

from collections.abc import Collection, Mapping, Sequence

from hltnode.processing.framework.readout import AUTO
from hltnode.protocol.na62.rich_banks import RICH_SOURCE, RICH_SUBDETECTOR, RichBankType
from hltnode.protocol.raw_data.bank_types import TYPES_OF_NODE, BankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import ODIN_SOURCE, ODIN_SUBDETECTOR


class RichReadout:
    """Hits of the RICH; one encoding (framework.readout.Readout)."""

    encodings = (AUTO,)
    subdetectors: Mapping[int, str] = {ODIN_SUBDETECTOR: "TIMING", RICH_SUBDETECTOR: "RICH"}
    bank_types: Mapping[int, str] = {int(each): each.name for each in RichBankType}
    truth_types = frozenset({int(RichBankType.TRUE_RINGS)})
    types_not_read_out: frozenset[int] = TYPES_OF_NODE
    error_type = RichBankType.SEVERAL_BANKS
    error_types: frozenset[int] = frozenset({int(RichBankType.SEVERAL_BANKS)})

    def sample_of(self, banks: Sequence[RawBank]) -> None:
        """None: all simulated events count alike."""

    def later_sources(self, sources: Collection[int]) -> Mapping[int, int]:  # noqa: ARG002
        """None: a feeder announces the source of all events."""
        return {}

    def encoding_of(self, bank_types: Collection[int]) -> str:  # noqa: ARG002
        """The only encoding."""
        return AUTO

    def reads(self, bank_type: int, encoding: str) -> bool:  # noqa: ARG002
        """True for hits, for what stands in their place, and for ODIN."""
        return bank_type in (BankType.ODIN, RichBankType.HITS, RichBankType.SEVERAL_BANKS)

    def source_of(self, bank: RawBank) -> int | None:
        """The source of the RICH for its banks, that of ODIN for ODIN; None for truth and for other banks."""
        if bank.type in self.types_not_read_out or bank.type in self.truth_types:
            return None
        if bank.type == BankType.ODIN:
            return ODIN_SOURCE
        return RICH_SOURCE if bank.source_id == RICH_SOURCE else None


RICH_READOUT = RichReadout()
