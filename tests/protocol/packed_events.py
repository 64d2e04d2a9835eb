"""MFPs of events that tests give as lists of banks."""

from collections.abc import Sequence

from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.protocol import mfp_packing
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.mfp_packing import PackingRules
from hltnode.protocol.raw_data.raw_bank import RawBank


def mfps_of_events(
    events: Sequence[Sequence[RawBank]],
    first_event: int = 0,
    encoding: str | None = None,
    rules: PackingRules = LHCB_READOUT,
) -> dict[int, bytes]:
    """The MFPs of a MEP by source id, of LHCb unless other rules are given."""
    return mfp_packing.mfps_of_events(rules, EventTable.of_events(events), first_event, encoding)
