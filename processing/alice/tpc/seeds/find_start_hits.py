"""tpc_find_start_hits: the first cluster of each chain of links that is long enough to be a seed."""

from hltnode.processing.alice.tpc.collections import (
    MIN_SEED,
    boxes,
    link_down,
    link_up,
    next_cluster,
    row_counts,
    start_count,
    start_hit,
)
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.protocol.alice.tpc_banks import N_ROWS, N_SLICES

find_start_hits = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=256,
    reads=(row_counts, boxes, link_up, link_down, next_cluster),
    updates=(event_flags,),
    writes=(start_hit, start_count),
    constants={"min_seed": MIN_SEED},
    allowed={"min_seed": range(MIN_SEED, N_ROWS // 2 + 2)},
)
"""min_seed: fewest clusters of a seed."""
