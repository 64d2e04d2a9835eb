"""The collection of SciFi hits: bounds, shapes and units."""

from hltnode.processing.framework.collections import F32, U16, U32, Collection, Column, Placement, Role, SharedTypes
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.geometry.ideal_scifi import N_LAYERS

N_ZONES = 2 * N_LAYERS
"""Zone 2 l is the lower half of layer l (0 to 11), zone 2 l + 1 the upper one."""
ZONE_STRIDE = N_ZONES + 8
MAX_HITS_PER_EVENT = 65535
HIT_PADDING = 8
NO_HIT = 0xFFFF

scifi_types = SharedTypes(
    __file__,
    "scifi_types",
    sizes={
        "n_scifi_layers": N_LAYERS,
        "n_scifi_zones": N_ZONES,
        "scifi_zone_stride": ZONE_STRIDE,
        "max_scifi_hits_of_event": MAX_HITS_PER_EVENT,
        "scifi_hit_padding": HIT_PADDING,
        "no_scifi_hit": NO_HIT,
    },
)
"""Hits of an event are numbered with 16 bits from its first one; no_scifi_hit is no hit's number. Behind the hits of an
event scifi_hit_padding places are left free: kernels may read, not use, columns this far behind the last hit."""


def max_hits(limits: BatchLimits) -> int:
    """Real events of minimum bias have a SciFi hit in 30 bytes of input; what does not fit is flagged and kept."""
    return limits.input_bytes // 8


scifi_hit_offset = Column(
    name="scifi_hits.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True
)
"""Prefix sum of the places of each event."""

scifi_hits = Collection(
    "scifi_hits",
    capacity=max_hits,
    placement=Placement(offsets=scifi_hit_offset),
    max_per_event=MAX_HITS_PER_EVENT + HIT_PADDING,
)
scifi_bound = scifi_hits.per_event("bound", U32)
"""Exact number of hits of each event, before anything is decoded; 0 for an event that is cut or does not fit."""
scifi_count = scifi_hits.per_event("count", U32, role=Role.OUTPUT)
scifi_zone_offset = scifi_hits.per_event("zone_offset", U16, width=ZONE_STRIDE)
"""[event][32]: hits of zone k of an event are [k] .. [k + 1], relative to its first hit; from 24 on: the count."""
scifi_x = scifi_hits.column("x", F32)
"""mm at y = 0, ascending inside each zone (equal ones by id)."""
scifi_z = scifi_hits.column("z", F32)
"""mm at y = 0."""
scifi_id = scifi_hits.column("id", U32)
"""LHCbID: 5 << 28 | channel id."""
scifi_info = scifi_hits.column("info", U16)
"""Mat index (11 bits) | pseudo-size (0 to 8) << 11. The mat gives the slopes dx_dy, dz_dy and the end of the fibre."""
