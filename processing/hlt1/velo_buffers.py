"""Buffers that the algorithms of the VELO chain share: bounds, shapes and units in one place.

Clusters, and all that is counted like them, of event e lie at velo_cluster_offset[e] .. velo_cluster_offset[e + 1]; its
tracks start at velo_cluster_offset[e] // 2.
"""

import numpy as np

from hltnode.processing.batch import BatchLimits
from hltnode.processing.hlt1.declaration import Buffer, Role

F32 = np.dtype("<f4")
I16 = np.dtype("<i2")
U8 = np.dtype("u1")
U16 = np.dtype("<u2")
U32 = np.dtype("<u4")

N_MODULE_PAIRS = 26
MAX_HITS_PER_TRACK = 26
MAX_PVS = 32


def _events(limits: BatchLimits) -> int:
    return limits.events


def _clusters(limits: BatchLimits) -> int:
    return limits.velo_clusters


def _tracks(limits: BatchLimits) -> int:
    return limits.velo_tracks


velo_geometry = Buffer(name="velo_geometry", dtype=F32, count=lambda _: 52 + 2 * 768 + 208 * 12 + 2, role=Role.CONSTANT)

velo_cluster_bound = Buffer(name="velo_cluster_bound", dtype=U32, count=_events)
"""Upper bound of the clusters of each event, from the sizes of its banks."""
velo_cluster_offset = Buffer(name="velo_cluster_offset", dtype=U32, count=lambda limits: limits.events + 1)
"""Prefix sum of velo_cluster_bound."""
velo_module_pair_offset = Buffer(
    name="velo_module_pair_offset", dtype=U32, count=lambda limits: limits.events * (N_MODULE_PAIRS + 1)
)
"""[event][27]: hits of module pair m of an event are [m] .. [m + 1], relative to the first cluster of the event."""
velo_cluster_count = Buffer(name="velo_cluster_count", dtype=U32, count=_events, role=Role.OUTPUT)

velo_hit_x = Buffer(name="velo_hit_x", dtype=F32, count=_clusters)
velo_hit_y = Buffer(name="velo_hit_y", dtype=F32, count=_clusters)
velo_hit_z = Buffer(name="velo_hit_z", dtype=F32, count=_clusters)
"""mm, sorted by phi inside each module pair."""
velo_hit_phi = Buffer(name="velo_hit_phi", dtype=I16, count=_clusters)
"""atan2(y, x) * 2^15 / pi, wraps as int16."""
velo_hit_id = Buffer(name="velo_hit_id", dtype=U32, count=_clusters)
"""LHCbID: 2 << 28 | orfx << 27 | orfy << 26 | sensor << 18 | chip << 16 | column << 8 | row (formats.md B8)."""

velo_track_count = Buffer(name="velo_track_count", dtype=U32, count=_events, role=Role.OUTPUT)
velo_track_hit_count = Buffer(name="velo_track_hit_count", dtype=U8, count=_tracks)
velo_track_hits = Buffer(
    name="velo_track_hits", dtype=U16, count=lambda limits: limits.velo_tracks * MAX_HITS_PER_TRACK
)
"""[track][26]: hits from large to small z, relative to the first cluster of the event."""
