"""velo_extend_downstream: tracks take free hits downstream of their first one."""

from hltnode.processing.framework.collections import F32, U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.velo import collections as velo

extend_downstream = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=64,
    large_events=velo.large_events,
    reads=(
        velo.velo_geometry,
        velo.cluster_count,
        velo.hit_x,
        velo.hit_y,
        velo.hit_z,
        velo.hit_phi,
        velo.hit_id,
        velo.module_pair_offset,
        velo.phi_bin_offset,
        velo.track_count,
    ),
    updates=(velo.track_hit_count, velo.track_hits),
    scratch=(
        Scratch("points", F32, per=velo.clusters, width=4),
        Scratch("taken", U32, per=velo.clusters),
        Scratch("hit_bid", U32, per=velo.clusters),
        Scratch("found", U32, per=velo.clusters),
    ),
    constants={"max_scatter": 0.15, "max_skipped_pairs": 2},
)
"""max_scatter: largest squared distance of a hit from the line, mm²; 0 switches the extension off.
max_skipped_pairs: module pairs without a hit between two hits.
Planes are module pairs: set max_scatter = 0 with another `plane_kind` of velo_follow_tracks."""
