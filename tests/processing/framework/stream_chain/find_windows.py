"""stream_find_windows: windows around the first hits of coincidences."""

import numpy as np

from hltnode.processing.framework.batch import event_flags, events, raw_banks
from hltnode.processing.framework.collections import U32, Collection, Placement, Record, Role, SharedTypes
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.framework.flags import ChainFlag, FlagKind
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS

SUB_SLICE_NS = 200
MARGIN_BEFORE, MARGIN_BEHIND = 1, 2
COINCIDENCE_NS, MIN_HITS, PAIR_HITS = 25, 3, 2
"""A window is kept for three hits within 25 ns, with line 1 for at least four."""
BEFORE_NS, BEHIND_NS = 100, 150
MAX_WINDOWS = 64
"""Most windows of a sub-slice."""
HIT = np.dtype([("channel", "<u2"), ("charge", "<u2"), ("time", "<u4")])

NO_NEIGHBOUR = ChainFlag(
    name="no_neighbour", bit=16, text="A source has no data in the sub-slice behind.", kind=FlagKind.NOTE
)
WINDOW = Record(
    "stream_window", np.dtype([("start_ns", "<i4"), ("end_ns", "<i4"), ("lines", "<u4"), ("n_hits", "<u4")])
)
stream_types = SharedTypes(
    __file__,
    "stream_types",
    records=(WINDOW,),
    sizes={
        "stream_sub_slice_ns": SUB_SLICE_NS,
        "stream_margin_before": MARGIN_BEFORE,
        "stream_margin_behind": MARGIN_BEHIND,
        "stream_max_windows": MAX_WINDOWS,
        "stream_first_board": USER_SUBDETECTORS[0],
        "stream_last_board": USER_SUBDETECTORS[1],
    },
    flags=(NO_NEIGHBOUR,),
)

windows = Collection(
    "windows",
    capacity=lambda limits: limits.events * MAX_WINDOWS,
    placement=Placement.fixed(MAX_WINDOWS),
    max_per_event=MAX_WINDOWS,
)
window_count = windows.per_event("count", U32, role=Role.OUTPUT)
window = windows.column("window", WINDOW)
event_number = events.per_event("number", U32)

find_windows = Algorithm.beside(
    __file__,
    prefix="stream",
    grid=Grid.EVENTS,
    block_size=32,
    reads=(raw_banks,),
    updates=(event_flags,),
    writes=(window_count, event_number, window),
    constants={
        "coincidence_ns": COINCIDENCE_NS,
        "min_hits": MIN_HITS,
        "before_ns": BEFORE_NS,
        "behind_ns": BEHIND_NS,
    },
)
