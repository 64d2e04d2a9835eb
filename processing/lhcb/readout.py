"""The readout of LHCb as chains and feeders use it."""

from collections.abc import Collection, Sequence
from enum import IntEnum
from typing import cast

from hltnode.processing.framework.readout import AUTO
from hltnode.protocol.lhcb.readout import NOT_READ_WITH, VeloBanks, mfps_of_events, readout_source_id, velo_encoding
from hltnode.protocol.raw_data.raw_bank import RawBank


class LhcbReadout:
    """Run-3 source ids, and one of two VELO encodings (framework.readout.Readout)."""

    encodings = (AUTO, *NOT_READ_WITH)

    def encoding_of(self, bank_types: Collection[int]) -> str:
        """Retina clusters where there are any, else super-pixels."""
        return velo_encoding(bank_types)

    def reads(self, bank_type: int, encoding: str) -> bool:
        """False for the banks of the other VELO encoding."""
        return all(bank_type != unread for chosen, unread in NOT_READ_WITH.items() if chosen == encoding)

    def source_of(self, bank: RawBank) -> int | None:
        """protocol.lhcb.readout.readout_source_id."""
        return readout_source_id(bank)

    def mfps_of_events(
        self, events: Sequence[Sequence[RawBank]], first_event_id: int, encoding: str
    ) -> dict[int, bytes]:
        """protocol.lhcb.readout.mfps_of_events."""
        return mfps_of_events(events, first_event_id, cast(VeloBanks, encoding))


def version_sizes(detector: str, versions: type[IntEnum]) -> dict[str, int]:
    """Sizes for kernels: `<detector>_version_<name>` for each bank version that is read."""
    return {f"{detector}_version_{version.name.lower()}": int(version) for version in versions}


LHCB_READOUT = LhcbReadout()
