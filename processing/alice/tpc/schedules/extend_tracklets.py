"""tpc_extend_tracklets: the steps of tracklets in one block of rows, in one direction."""

from hltnode.processing.alice.tpc.collections import (
    ROW_BLOCKS,
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
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.protocol.alice.tpc_banks import N_SLICES

extend_tracklets = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=128,
    reads=(geometry, row_counts, boxes, cluster_places, first_in_bin, next_cluster, start_count),
    updates=(event_flags, parked_at, parked_state, parked_steps, parked_rows),
    constants={**TRACKLET_CONSTANTS, "row_block": 0},
    allowed={**ALLOWED, "row_block": range(2 * ROW_BLOCKS)},
    shared=TRACKLET_CONSTANTS,
)
"""row_block: from 0 upwards, then downwards. A wrong one leaves the steps to the last launch."""
