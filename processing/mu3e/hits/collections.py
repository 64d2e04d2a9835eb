"""Hits of each sub-slice: bounds, shapes and units."""

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import F32, U32, U64, Collection, Placement, Role, SharedTypes
from hltnode.protocol.mu3e.hit_banks import HIT, HITS_VERSION, MU3E_SUBDETECTOR, HitBankType

MAX_HITS = 2048
"""Hits of a sub-slice and those of its neighbours that its tracks need. 10^8 muons a second give about 600; sub-slices
of 200 ns have room for six times this rate."""
GROUPS = 6
"""Layers 0 to 3 of the centre, and layers 2 and 3 of the recurl stations."""
HIT_GROUP_BIT, HIT_TIME_BIT = 45, 28

mu3e_types = SharedTypes(
    __file__,
    "mu3e_types",
    sizes={
        "mu3e_subdetector": MU3E_SUBDETECTOR,
        "mu3e_hits_bank": int(HitBankType.HITS),
        "mu3e_hits_version": HITS_VERSION,
        "mu3e_hit_bytes": HIT.itemsize,
        "mu3e_max_hits": MAX_HITS,
        "mu3e_groups": GROUPS,
        "mu3e_recurl_groups": 2,
        "mu3e_group_bit": HIT_GROUP_BIT,
        "mu3e_time_bit": HIT_TIME_BIT,
    },
)

hits = Collection(
    "mu3e_hits",
    capacity=lambda limits: MAX_HITS * limits.events,
    placement=Placement.fixed(MAX_HITS),
    max_per_event=MAX_HITS,
)
hit = hits.column("hit", U64)
"""In ascending order. Group from bit 45 on; time from bit 28 on, in ns since `time_before` before the start of the
sub-slice; sensor from bit 16, column from bit 8, row."""
hit_x = hits.column("x", F32)
hit_y = hits.column("y", F32)
hit_z = hits.column("z", F32)
"""mm."""
hit_count = hits.per_event("count", U32)
"""Hits of the sub-slice, and those of its neighbours that its tracks need."""
own_hit_count = hits.per_event("own", U32, role=Role.OUTPUT)
"""Hits of the sub-slice itself."""
group_begin = hits.per_event("group_begin", U32, width=GROUPS + 1)
"""First hit of each group; the last element is the number of hits."""
event_number = events.per_event("number", U32, width=2)
"""[event][2]: number of the time slice, low 32 bits, and number of the sub-slice in it."""
