"""The readout of ALICE's TPC: 36 to 1,728 sources, each with rows of one slice."""

from collections.abc import Collection, Mapping, Sequence

from hltnode.processing.framework.readout import AUTO
from hltnode.protocol.alice.tpc_banks import TPC_SUBDETECTOR, TRUTH_TYPES, TpcBankType, is_tpc_source
from hltnode.protocol.raw_data.bank_types import TYPES_OF_NODE, BankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import ODIN_SOURCE, ODIN_SUBDETECTOR


class TpcReadout:
    """Clusters by source; one encoding (framework.readout.Readout)."""

    encodings = (AUTO,)
    subdetectors: Mapping[int, str] = {ODIN_SUBDETECTOR: "TIMING", TPC_SUBDETECTOR: "TPC"}
    bank_types: Mapping[int, str] = {int(each): each.name for each in TpcBankType}
    truth_types = TRUTH_TYPES
    types_not_read_out: frozenset[int] = TYPES_OF_NODE
    error_type = TpcBankType.SEVERAL_BANKS
    error_types: frozenset[int] = frozenset({int(TpcBankType.SEVERAL_BANKS)})

    def sample_of(self, banks: Sequence[RawBank]) -> None:
        """None: all simulated events count alike."""

    def later_sources(self, sources: Collection[int]) -> Mapping[int, int]:  # noqa: ARG002
        """None: a feeder announces the sources of all events; an empty source sends an empty bank."""
        return {}

    def encoding_of(self, bank_types: Collection[int]) -> str:  # noqa: ARG002
        """The only encoding."""
        return AUTO

    def reads(self, bank_type: int, encoding: str) -> bool:  # noqa: ARG002
        """True for clusters, for what stands in their place, and for ODIN."""
        return bank_type in (BankType.ODIN, TpcBankType.CLUSTERS, TpcBankType.SEVERAL_BANKS)

    def source_of(self, bank: RawBank) -> int | None:
        """The source of a bank of clusters, that of ODIN for ODIN; None for truth and for other banks."""
        if bank.type in self.types_not_read_out or bank.type in self.truth_types:
            return None
        if bank.type == BankType.ODIN:
            return ODIN_SOURCE
        return bank.source_id if is_tpc_source(bank.source_id) else None


TPC_READOUT = TpcReadout()
