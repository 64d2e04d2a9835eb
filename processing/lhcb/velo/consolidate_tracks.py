"""velo_consolidate_tracks: the tracks that are left, without gaps (kernels/velo/consolidate_tracks.cuh)."""

from hltnode.processing.framework.declaration import Algorithm, Grid, batch_header, event_flags
from hltnode.processing.lhcb.velo import collections as velo

velo_consolidate_tracks = Algorithm(
    name="velo_consolidate_tracks",
    grid=Grid.EVENTS,
    block_size=64,
    inputs=(
        batch_header,
        velo.velo_cluster_bound,
        velo.velo_cluster_offset,
        velo.velo_candidate_count,
        velo.velo_seed_hits,
        velo.velo_seed_count,
    ),
    updates=(event_flags, velo.velo_track_hits, velo.velo_track_hit_count),
    outputs=(velo.velo_track_count,),
)
