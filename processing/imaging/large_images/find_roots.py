"""ccl_find_roots: the first run of the component of each run."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import run_label
from hltnode.processing.imaging.large_images.collections import (
    N_PARTS,
    part_first_run,
    part_root_count,
    part_run_count,
    run_parent,
)

find_roots = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.PARTS,
    parts=N_PARTS,
    block_size=128,
    reads=(part_first_run, part_run_count, run_parent),
    writes=(run_label, part_root_count),
)
