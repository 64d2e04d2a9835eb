"""tpc_construct_from_pool: the constructor with a thread takes the next start hit when its tracklet has ended."""

from hltnode.processing.alice.tpc.collections import (
    boxes,
    cluster_places,
    first_in_bin,
    geometry,
    next_cluster,
    owned_clusters,
    row_counts,
    start_count,
    start_hit,
    tracklet_count,
    weights,
)
from hltnode.processing.alice.tpc.tracks.constants import ALLOWED, TRACKLET_CONSTANTS
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.protocol.alice.tpc_banks import N_SLICES

construct_from_pool = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=128,
    reads=(geometry, row_counts, boxes, cluster_places, first_in_bin, next_cluster, start_hit, start_count),
    updates=(event_flags,),
    writes=(weights, owned_clusters, tracklet_count),
    constants=TRACKLET_CONSTANTS,
    allowed=ALLOWED,
    shared=TRACKLET_CONSTANTS,
)
