"""ccl_join_groups: runs of different groups of parts, joined where they touch: the last level of a pyramid."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import row_runs, run_span
from hltnode.processing.imaging.images.collections import image_row_count
from hltnode.processing.imaging.large_images.collections import part_reach, run_parent

join_groups = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.EVENTS,
    block_size=32,
    reads=(image_row_count, row_runs, run_span, part_reach),
    updates=(run_parent,),
)
