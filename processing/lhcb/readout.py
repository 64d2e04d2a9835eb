"""The readout of LHCb as chains and feeders use it."""

from collections.abc import Collection, Sequence
from typing import cast

from hltnode.processing.framework.readout import AUTO
from hltnode.protocol.raw_data.mfp import VeloBanks, mfps_of_events
from hltnode.protocol.raw_data.raw_bank import BankType, RawBank
from hltnode.protocol.raw_data.source_id import readout_source_id

# Simulated events may hold both VELO encodings of the same hits, and both have the same source ids.
_NOT_READ_WITH = {"retina": BankType.VP, "superpixel": BankType.VP_RETINA_CLUSTER}


class LhcbReadout:
    """Run-3 source ids, and one of two VELO encodings (framework.readout.Readout)."""

    encodings = (AUTO, "retina", "superpixel")

    def encoding_of(self, bank_types: Collection[int]) -> str:
        """Retina clusters where there are any, else super-pixels."""
        return "retina" if BankType.VP_RETINA_CLUSTER in bank_types else "superpixel"

    def reads(self, bank_type: int, encoding: str) -> bool:
        """False for the banks of the other VELO encoding."""
        return bank_type != _NOT_READ_WITH.get(encoding)

    def source_of(self, bank: RawBank) -> int | None:
        """protocol.readout_source_id."""
        return readout_source_id(bank)

    def mfps_of_events(
        self, events: Sequence[Sequence[RawBank]], first_event_id: int, encoding: str
    ) -> dict[int, bytes]:
        """protocol.mfps_of_events."""
        return mfps_of_events(events, first_event_id, cast(VeloBanks, encoding))


LHCB_READOUT = LhcbReadout()
