"""Columns of an event for luminosity: the channels of PLUME, and the counters of the luminosity summary."""

from itertools import accumulate

import numpy as np

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import U16, U32, Record, Role, SharedTypes, constant_column
from hltnode.processing.framework.event_summary import EventSummary
from hltnode.processing.framework.flags import ChainFlag, FlagKind
from hltnode.processing.lhcb.luminosity.counters import COUNTERS, ETA_EDGES, GROUPS, MODULES_OF_STATION
from hltnode.processing.lhcb.readout import version_sizes
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import PlumeVersion
from hltnode.protocol.lhcb.banks.plume import BANK_BYTES, LUMI_CHANNELS, MASK_BYTES, N_CHANNELS, PLUME_SOURCE

N_COUNTERS = len(COUNTERS)
HALF_CHANNELS = len(LUMI_CHANNELS) // 2
ODIN_LUMI = 0x0008
"""Bit of the event type of ODIN for luminosity."""

LUMI_SCALES = Record(
    "lumi_scales",
    np.dtype([("largest", "<u4", (N_COUNTERS,)), ("shift", "<f4", (N_COUNTERS,)), ("scale", "<f4", (N_COUNTERS,))]),
    {"largest": "stored number", "shift": "a stored number is shift + scale times the counted one"},
)

LUMI_SATURATED = ChainFlag(
    name="lumi_saturated",
    bit=16,
    text=(
        "A counter of the luminosity summary of this event, which ODIN marks for luminosity, is too large for its "
        "bits. It has the largest number instead."
    ),
    kind=FlagKind.NOTE,
)

_FIRST = tuple(accumulate((len(group) for group in GROUPS), initial=0))

lumi_types = SharedTypes(
    __file__,
    "lumi_types",
    records=(LUMI_SCALES,),
    flags=(LUMI_SATURATED,),
    sizes={
        "n_lumi_counters": N_COUNTERS,
        **dict(
            zip(
                (f"first_lumi_{name}" for name in ("velo", "vertex", "scifi", "ecal", "muon", "plume", "state")),
                _FIRST,
                strict=False,
            )
        ),
        "n_lumi_scifi_sums": 2 * len(MODULES_OF_STATION),
        **{f"lumi_sinh2_of_{edge:.0f}": float(np.sinh(edge) ** 2) for edge in ETA_EDGES},
        "odin_lumi_type": ODIN_LUMI,
        "plume_bank_type": int(LhcbBankType.PLUME),
        **version_sizes("plume", PlumeVersion),
        "plume_source": PLUME_SOURCE,
        "plume_bank_bytes": BANK_BYTES,
        "plume_mask_bytes": MASK_BYTES,
        "n_plume_channels": N_CHANNELS,
        "n_plume_masks": N_CHANNELS // 32,
        "n_plume_lumi_channels": HALF_CHANNELS,
    },
)
"""first_lumi_X: place of the first counter of a group. lumi_sinh2_of_X: square of sinh of a pseudorapidity.
n_plume_lumi_channels: the first ones of each half."""

lumi_scales = constant_column("lumi_scales", LUMI_SCALES)
"""scales_table()."""

plume_adc = events.per_event("plume_adc", U16, width=N_CHANNELS)
"""[event][64]: 0 in an event without a valid bank."""
plume_over_threshold = events.per_event("plume_over_threshold", U32, width=N_CHANNELS // 32)
"""[event][2]: bit c of word h is channel 32 h + c."""
plume_read = events.per_event("plume_read", U32)
"""1 for an event with a valid bank, else 0."""

lumi_counters = events.per_event("lumi_counters", U32, width=N_COUNTERS, role=Role.OUTPUT)
"""[event][counter]: stored numbers."""

LUMI_SUMMARY = EventSummary(lumi_counters, COUNTERS)


def scales_table() -> bytes:
    """LUMI_SCALES of the counters."""
    table = np.zeros(1, LUMI_SCALES.dtype)
    table["largest"] = [counter.largest_stored for counter in COUNTERS]
    table["shift"] = [counter.shift for counter in COUNTERS]
    table["scale"] = [counter.scale for counter in COUNTERS]
    return table.tobytes()
