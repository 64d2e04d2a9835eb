"""velo_cluster_offsets: where the clusters of each event lie (kernels/velo/cluster_offsets.cuh)."""

from hltnode.processing.framework.declaration import Algorithm, Capacity, Grid, batch_header, event_flags
from hltnode.processing.lhcb.velo.collections import velo_cluster_bound, velo_cluster_offset

velo_cluster_offsets = Algorithm(
    name="velo_cluster_offsets",
    grid=Grid.ONE,
    block_size=256,
    inputs=(batch_header,),
    updates=(event_flags, velo_cluster_bound),
    outputs=(velo_cluster_offset,),
    capacities=(Capacity("max_velo_clusters", lambda limits: limits.velo_clusters),),
)
