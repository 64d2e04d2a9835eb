"""ccl_join_borders: runs of different parts, joined where they touch."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import row_runs, run_span
from hltnode.processing.imaging.images.collections import image_row_count
from hltnode.processing.imaging.large_images.collections import part_reach, run_parent

join_borders = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(image_row_count, row_runs, run_span, part_reach),
    updates=(run_parent,),
)
