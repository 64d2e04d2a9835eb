"""The readout of an underwater telescope: sources of any number, such as the floors of a tower or the lines of a block.

A raw event is a sub-slice of time.
"""

from collections.abc import Collection, Mapping, Sequence

from hltnode.processing.framework.readout import AUTO
from hltnode.protocol.km3net.hit_banks import KM3NET_SUBDETECTOR, HitBankType
from hltnode.protocol.raw_data.bank_types import TYPES_OF_NODE, BankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import ODIN_SOURCE, ODIN_SUBDETECTOR, subdetector_of


class TelescopeReadout:
    """Hits by source; one encoding (framework.readout.Readout)."""

    encodings = (AUTO,)
    subdetectors: Mapping[int, str] = {ODIN_SUBDETECTOR: "TIMING", KM3NET_SUBDETECTOR: "PMTS"}
    bank_types: Mapping[int, str] = {int(each): each.name for each in HitBankType}
    truth_types = frozenset({int(HitBankType.TRUE_MUONS)})
    types_not_read_out: frozenset[int] = TYPES_OF_NODE
    error_type = HitBankType.SEVERAL_BANKS
    error_types: frozenset[int] = frozenset({int(HitBankType.SEVERAL_BANKS)})

    def sample_of(self, banks: Sequence[RawBank]) -> None:
        """None: all simulated sub-slices count alike."""

    def later_sources(self, sources: Collection[int]) -> Mapping[int, int]:  # noqa: ARG002
        """None: a feeder announces the sources of all sub-slices; a source without hits sends an empty bank."""
        return {}

    def encoding_of(self, bank_types: Collection[int]) -> str:  # noqa: ARG002
        """The only encoding."""
        return AUTO

    def reads(self, bank_type: int, encoding: str) -> bool:  # noqa: ARG002
        """True for hits, for what stands in their place, and for ODIN."""
        return bank_type in (BankType.ODIN, HitBankType.HITS, HitBankType.SEVERAL_BANKS)

    def source_of(self, bank: RawBank) -> int | None:
        """The source of a bank of hits, that of ODIN for ODIN; None for truth and for other banks."""
        if bank.type in self.types_not_read_out or bank.type in self.truth_types:
            return None
        if bank.type == BankType.ODIN:
            return ODIN_SOURCE
        return bank.source_id if subdetector_of(bank.source_id) == KM3NET_SUBDETECTOR else None


TELESCOPE_READOUT = TelescopeReadout()
