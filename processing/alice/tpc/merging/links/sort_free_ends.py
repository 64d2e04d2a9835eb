"""tpc_sort_free_ends: ends of segments without a link, by the cubes in which they are searched."""

from hltnode.processing.alice.tpc.collections import track_count
from hltnode.processing.alice.tpc.merging.collections import (
    best_end,
    cell_begins,
    free_end,
    free_number,
    inner_end,
    longer_segment,
    outer_end,
    shorter_segment,
)
from hltnode.processing.framework.declaration import Algorithm, Grid

sort_free_ends = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(track_count, inner_end, outer_end, longer_segment, shorter_segment, best_end),
    writes=(free_end, free_number, cell_begins),
)
