"""velo_hit_offsets: the places of the clusters of each event."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.velo.collections import cluster_bound, cluster_offset, clusters

hit_offsets = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.ONE,
    block_size=256,
    updates=(event_flags, cluster_bound),
    writes=(cluster_offset,),
    capacities={"max_velo_clusters": clusters.capacity},
)
