"""ccl_join_runs: the runs of each part, joined where they touch inside the part."""

from hltnode.processing.framework.batch import raw_input
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import row_runs, run_span
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape
from hltnode.processing.imaging.large_images.collections import (
    N_PARTS,
    part_first_run,
    part_reach,
    part_threshold,
    run_parent,
)

join_runs = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.PARTS,
    parts=N_PARTS,
    block_size=128,
    reads=(
        *(raw_input, image_shape, image_row_count, image_row_data),
        *(part_first_run, part_threshold, part_reach),
    ),
    updates=(row_runs,),
    writes=(run_span, run_parent),
)
