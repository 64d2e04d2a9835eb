"""velo_kill_clones: of two tracks that share most of their hits one goes (kernels/velo/kill_clones.cuh)."""

from hltnode.processing.framework.declaration import Algorithm, Constant, Grid, batch_header
from hltnode.processing.lhcb.velo import collections as velo

velo_kill_clones = Algorithm(
    name="velo_kill_clones",
    grid=Grid.EVENTS,
    block_size=64,
    inputs=(
        batch_header,
        velo.velo_cluster_offset,
        velo.velo_cluster_count,
        velo.velo_candidate_count,
        velo.velo_track_hits,
    ),
    updates=(velo.velo_track_hit_count,),
    outputs=(velo.velo_hit_owner,),
    constants=(Constant("max_shared_fraction", 0.7),),
)
