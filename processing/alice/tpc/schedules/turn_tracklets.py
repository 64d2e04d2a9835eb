"""tpc_turn_tracklets: tracklets turn from the way up to the way down."""

from hltnode.processing.alice.tpc.collections import (
    boxes,
    cluster_places,
    first_in_bin,
    geometry,
    next_cluster,
    parked_at,
    parked_rows,
    parked_state,
    parked_steps,
    row_counts,
    start_count,
)
from hltnode.processing.alice.tpc.tracks.constants import ALLOWED, TRACKLET_CONSTANTS
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.protocol.alice.tpc_banks import N_SLICES

turn_tracklets = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=128,
    reads=(geometry, row_counts, boxes, cluster_places, first_in_bin, next_cluster, start_count),
    updates=(parked_at, parked_state, parked_steps, parked_rows),
    constants=TRACKLET_CONSTANTS,
    allowed=ALLOWED,
    shared=TRACKLET_CONSTANTS,
)
