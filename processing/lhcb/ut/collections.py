"""The collections of the UT: hits by sector group, and VELO-UT tracks, with their bounds, shapes and units."""

from hltnode.processing.framework.collections import F32, U8, U16, U32, Collection, Column, Placement, Role, SharedTypes
from hltnode.processing.framework.limits import BatchLimits

N_LAYERS = 4
MAX_GROUPS = 127
"""Sector groups of all layers: sectors of equal x in one layer. The real detector has 84."""
GROUP_STRIDE = MAX_GROUPS + 1
MAX_HITS_PER_EVENT = 65535
HIT_PADDING = 8
MAX_TRACKS_PER_EVENT = 1024
NO_HIT = 0xFFFF
NO_TRACK = 0xFFFF

ut_types = SharedTypes(
    __file__,
    "ut_types",
    sizes={
        "n_ut_layers": N_LAYERS,
        "max_ut_groups": MAX_GROUPS,
        "ut_group_stride": GROUP_STRIDE,
        "max_ut_hits_of_event": MAX_HITS_PER_EVENT,
        "ut_hit_padding": HIT_PADDING,
        "max_ut_tracks": MAX_TRACKS_PER_EVENT,
        "no_ut_hit": NO_HIT,
        "no_ut_track": NO_TRACK,
    },
)
"""Hits of an event are numbered with 16 bits from its first one; no_ut_hit and no_ut_track are no hit's or track's
number. Behind the hits of an event ut_hit_padding places are left free."""


def max_hits(limits: BatchLimits) -> int:
    """Real events of minimum bias have a UT hit in 100 bytes of input; what does not fit is flagged and kept."""
    return limits.input_bytes // 16


ut_hit_offset = Column(name="ut_hits.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True)
"""Prefix sum of the places of each event."""

ut_hits = Collection(
    "ut_hits",
    capacity=max_hits,
    placement=Placement(offsets=ut_hit_offset),
    max_per_event=MAX_HITS_PER_EVENT + HIT_PADDING,
)
ut_bound = ut_hits.per_event("bound", U32)
"""Number of hits of each event, before anything is decoded; 0 for an event that is cut or does not fit."""
ut_count = ut_hits.per_event("count", U32, role=Role.OUTPUT)
ut_group_offset = ut_hits.per_event("group_offset", U16, width=GROUP_STRIDE)
"""[event][128]: hits of sector group g (numbered through all layers) of an event are [g] .. [g + 1], relative to its
first hit; entries behind the last group are the count."""
ut_x = ut_hits.column("x", F32)
ut_z = ut_hits.column("z", F32)
"""mm at y = 0."""
ut_y_begin = ut_hits.column("y_begin", F32)
ut_y_end = ut_hits.column("y_end", F32)
"""mm, y_begin < y_end; inside a group hits ascend by y_begin, then x, then id."""
ut_weight = ut_hits.column("weight", F32)
"""12 / pitch² (1/mm²)."""
ut_id = ut_hits.column("id", U32)
"""LHCbID: 3 << 28 | channel id."""

ut_tracks = Collection(
    "ut_tracks",
    capacity=lambda limits: limits.events * MAX_TRACKS_PER_EVENT,
    placement=Placement.fixed(MAX_TRACKS_PER_EVENT),
    max_per_event=MAX_TRACKS_PER_EVENT,
)
"""VELO tracks with at least three hits in the UT. An event with more of them is flagged; the first ones are kept."""
ut_track_count = ut_tracks.per_event("count", U32, role=Role.OUTPUT)
ut_track_velo = ut_tracks.column("velo_track", U16)
"""Number of the VELO track in its event; ascending, so each VELO track has one VELO-UT track at most."""
ut_track_qop = ut_tracks.column("qop", F32)
"""Charge over momentum, 1/MeV."""
ut_track_x = ut_tracks.column("x", F32)
ut_track_z = ut_tracks.column("z", F32)
"""mm: the fitted x at the last hit."""
ut_track_tx = ut_tracks.column("tx", F32)
"""Fitted slope there. y and ty are those of the VELO track."""
ut_track_hit_count = ut_tracks.column("hit_count", U8)
ut_track_hits = ut_tracks.column("hits", U16, width=N_LAYERS)
"""[track][4]: the hit of each layer, relative to the first hit of the event, or NO_HIT."""
