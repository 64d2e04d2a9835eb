"""ccl_join_borders: runs of different parts of a group, joined where they touch: the first level of a pyramid."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import row_runs, run_span
from hltnode.processing.imaging.images.collections import image_row_count
from hltnode.processing.imaging.large_images.collections import N_GROUPS, part_reach, run_parent

join_borders = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.PARTS,
    parts=N_GROUPS,
    block_size=32,
    reads=(image_row_count, row_runs, run_span, part_reach),
    updates=(run_parent,),
    after_all_parts=True,
)
