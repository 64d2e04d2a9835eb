"""Buffers that the algorithms of the VELO chain share: bounds, shapes and units in one place.

Clusters, and all that is counted like them, of event e lie at velo_cluster_offset[e] .. velo_cluster_offset[e + 1]; its
tracks start at velo_cluster_offset[e] // 2.
"""

import numpy as np

from hltnode.processing.framework.batch import BatchLimits
from hltnode.processing.framework.declaration import Buffer, Role

F32 = np.dtype("<f4")
I16 = np.dtype("<i2")
I32 = np.dtype("<i4")
U8 = np.dtype("u1")
U16 = np.dtype("<u2")
U32 = np.dtype("<u4")
U64 = np.dtype("<u8")

N_MODULE_PAIRS = 26
PHI_BINS = 128
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
"""Prefix sum of velo_cluster_bound, with 8 places left free behind each event that has any: kernels may read there."""
velo_super_pixel_bound = Buffer(name="velo_super_pixel_bound", dtype=U32, count=_events)
"""The part of velo_cluster_bound that comes from super-pixels; the rest comes from retina clusters."""
velo_module_pair_offset = Buffer(
    name="velo_module_pair_offset", dtype=U32, count=lambda limits: limits.events * (N_MODULE_PAIRS + 1)
)
"""[event][27]: hits of module pair m of an event are [m] .. [m + 1], relative to the first cluster of the event."""
velo_cluster_count = Buffer(name="velo_cluster_count", dtype=U32, count=_events, role=Role.OUTPUT)

velo_unsorted_x = Buffer(name="velo_unsorted_x", dtype=F32, count=_clusters)
velo_unsorted_y = Buffer(name="velo_unsorted_y", dtype=F32, count=_clusters)
velo_unsorted_z = Buffer(name="velo_unsorted_z", dtype=F32, count=_clusters)
velo_unsorted_phi = Buffer(name="velo_unsorted_phi", dtype=I16, count=_clusters)
velo_unsorted_id = Buffer(name="velo_unsorted_id", dtype=U32, count=_clusters)
velo_unsorted_module_pair = Buffer(name="velo_unsorted_module_pair", dtype=U8, count=_clusters)
"""0 to 25; 255 marks a place without a hit."""
velo_unsorted_count = Buffer(name="velo_unsorted_count", dtype=U32, count=_events)
"""Places used in velo_unsorted_*."""
velo_unsorted = (
    velo_unsorted_x,
    velo_unsorted_y,
    velo_unsorted_z,
    velo_unsorted_phi,
    velo_unsorted_id,
    velo_unsorted_module_pair,
    velo_unsorted_count,
)
"""Hits as the decoders leave them: retina clusters first, then those of super-pixels."""
velo_super_pixel_table = Buffer(name="velo_super_pixel_table", dtype=U32, count=lambda limits: 4 * limits.velo_clusters)
"""Scratch of masked clustering: a hash table for each event."""
velo_sort_key = Buffer(name="velo_sort_key", dtype=U64, count=_clusters)
velo_sort_index = Buffer(name="velo_sort_index", dtype=U16, count=_clusters)
"""Scratch of the sort: phi and id of a hit, and its place in velo_unsorted_*."""
velo_phi_bin_offset = Buffer(
    name="velo_phi_bin_offset", dtype=U16, count=lambda limits: limits.events * (N_MODULE_PAIRS * PHI_BINS + 1)
)
"""[event][26 * 128 + 1]: hits of bin b are [b] .. [b + 1], relative to the first cluster of the event."""

velo_hit_x = Buffer(name="velo_hit_x", dtype=F32, count=_clusters)
velo_hit_y = Buffer(name="velo_hit_y", dtype=F32, count=_clusters)
velo_hit_z = Buffer(name="velo_hit_z", dtype=F32, count=_clusters)
"""mm, sorted by phi inside each module pair."""
velo_hit_phi = Buffer(name="velo_hit_phi", dtype=I16, count=_clusters)
"""atan2(y, x) * 2^15 / pi, wraps as int16."""
velo_hit_id = Buffer(name="velo_hit_id", dtype=U32, count=_clusters)
"""LHCbID: 2 << 28 | orfx << 27 | orfy << 26 | sensor << 18 | chip << 16 | column << 8 | row (formats.md B8)."""

velo_hit_used = Buffer(name="velo_hit_used", dtype=U32, count=_clusters)
"""1 for a hit on a track of four hits or more."""
velo_hit_owner = Buffer(name="velo_hit_owner", dtype=U32, count=_clusters)
velo_unused_hits = Buffer(name="velo_unused_hits", dtype=U16, count=_clusters)
velo_downstream_x = Buffer(name="velo_downstream_x", dtype=F32, count=_clusters)
velo_downstream_y = Buffer(name="velo_downstream_y", dtype=F32, count=_clusters)
velo_downstream_z = Buffer(name="velo_downstream_z", dtype=F32, count=_clusters)
velo_downstream_phi = Buffer(name="velo_downstream_phi", dtype=I32, count=_clusters)
velo_downstream_hit = Buffer(name="velo_downstream_hit", dtype=U16, count=_clusters)
velo_open_hits = Buffer(name="velo_open_hits", dtype=U32, count=_clusters)
velo_open_state = Buffer(name="velo_open_state", dtype=U32, count=_clusters)
velo_open_found = Buffer(name="velo_open_found", dtype=U32, count=_clusters)
velo_open_bid = Buffer(name="velo_open_bid", dtype=U32, count=_clusters)
velo_hit_bid = Buffer(name="velo_hit_bid", dtype=U32, count=_clusters)
"""Scratch of the tracking: at most one open track for each hit."""
velo_seed_hits = Buffer(name="velo_seed_hits", dtype=U16, count=lambda limits: 4 * limits.velo_clusters)
"""[seed][4]: hits of a triplet from large to small z; 0 left, 1 extended, 2 accepted as a three-hit track."""
velo_seed_count = Buffer(name="velo_seed_count", dtype=U32, count=_events)
velo_candidate_count = Buffer(name="velo_candidate_count", dtype=U32, count=_events)
"""Tracks of four hits and more before clones are killed."""

velo_track_count = Buffer(name="velo_track_count", dtype=U32, count=_events, role=Role.OUTPUT)
velo_track_hit_count = Buffer(name="velo_track_hit_count", dtype=U8, count=_tracks)
velo_track_hits = Buffer(
    name="velo_track_hits", dtype=U16, count=lambda limits: limits.velo_tracks * MAX_HITS_PER_TRACK
)
"""[track][26]: hits from large to small z, relative to the first cluster of the event."""
