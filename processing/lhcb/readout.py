"""The readout of LHCb, for chains and feeders."""

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum

from hltnode.processing.framework.readout import AUTO, SampleTruth
from hltnode.protocol.lhcb.bank_types import NOT_READ_OUT, TRUTH_TYPES, LhcbBankType
from hltnode.protocol.lhcb.readout import (
    ERROR_TYPE,
    ERROR_TYPES,
    NOT_READ_WITH,
    readout_source_id,
    velo_encoding,
)
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.lhcb.truth import decode_sample
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import source_id

# The particles of a simulated event fill one bank of 64 KiB, rarely two.
_TRUTH_BANKS = 3


class LhcbReadout:
    """Run-3 source ids, and one of two VELO encodings (framework.readout.Readout)."""

    encodings = (AUTO, *NOT_READ_WITH)
    subdetectors: Mapping[int, str] = {int(detector): detector.name.replace("_", " ") for detector in SubDetector}
    bank_types: Mapping[int, str] = {int(bank_type): bank_type.name for bank_type in LhcbBankType}
    truth_types = TRUTH_TYPES
    types_not_read_out = NOT_READ_OUT
    error_type = ERROR_TYPE
    error_types = ERROR_TYPES

    def later_sources(self, sources: Collection[int]) -> Mapping[int, int]:
        """Banks of true particles that later events may have, in addition to those of the first events."""
        first = source_id(SubDetector.TDET, 0)
        return {first + number: first for number in range(1, _TRUTH_BANKS)} if first in sources else {}

    def sample_of(self, banks: Sequence[RawBank]) -> SampleTruth | None:
        """From the bank of type 34."""
        # The simulation writes truth behind all other banks.
        for bank in reversed(banks):
            if bank.type == LhcbBankType.MC_SAMPLE:
                sample = decode_sample(bank)
                return SampleTruth(sample.kind, sample.minimum_bias, sample.weight)
        return None

    def encoding_of(self, bank_types: Collection[int]) -> str:
        """Retina clusters if there are any, otherwise super-pixels."""
        return velo_encoding(bank_types)

    def reads(self, bank_type: int, encoding: str) -> bool:
        """False for the banks of the other VELO encoding."""
        return all(bank_type != unread for chosen, unread in NOT_READ_WITH.items() if chosen == encoding)

    def source_of(self, bank: RawBank) -> int | None:
        """protocol.lhcb.readout.readout_source_id."""
        return readout_source_id(bank)


def version_sizes(detector: str, versions: type[IntEnum]) -> dict[str, int]:
    """Constants for kernels: `<detector>_version_<name>` for each supported bank version."""
    return {f"{detector}_version_{version.name.lower()}": int(version) for version in versions}


LHCB_READOUT = LhcbReadout()
