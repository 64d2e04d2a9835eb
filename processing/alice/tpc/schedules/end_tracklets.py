"""tpc_end_tracklets: the longest tracklet on each cluster, from parked tracklets."""

from hltnode.processing.alice.tpc.collections import (
    boxes,
    cluster_places,
    first_in_bin,
    geometry,
    next_cluster,
    owned_clusters,
    parked_at,
    parked_rows,
    parked_state,
    parked_steps,
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

end_tracklets = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=128,
    reads=(geometry, row_counts, boxes, cluster_places, first_in_bin, next_cluster, start_count, start_hit),
    updates=(event_flags, parked_at, parked_state, parked_steps, parked_rows),
    writes=(weights, owned_clusters, tracklet_count),
    constants=TRACKLET_CONSTANTS,
    allowed=ALLOWED,
    shared=TRACKLET_CONSTANTS,
)
