"""velo_filter_three_hit_tracks: straight triplets of free hits (kernels/velo/filter_three_hit_tracks.cuh)."""

from hltnode.processing.framework.declaration import Algorithm, Constant, Grid, batch_header
from hltnode.processing.lhcb.velo import collections as velo

velo_filter_three_hit_tracks = Algorithm(
    name="velo_filter_three_hit_tracks",
    grid=Grid.EVENTS,
    block_size=64,
    inputs=(
        batch_header,
        velo.velo_cluster_offset,
        velo.velo_hit_x,
        velo.velo_hit_y,
        velo.velo_hit_z,
        velo.velo_cluster_count,
        velo.velo_seed_count,
        velo.velo_hit_used,
    ),
    updates=(velo.velo_seed_hits, velo.velo_hit_owner),
    constants=(Constant("max_chi2", 18.0),),
)
