"""ccl_number_roots: the number of the component of its first run."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import run_label
from hltnode.processing.imaging.large_images.collections import (
    N_PARTS,
    part_first_component,
    part_first_run,
    part_run_count,
    run_parent,
)

number_roots = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.PARTS,
    parts=N_PARTS,
    block_size=128,
    reads=(part_first_run, part_run_count, part_first_component, run_label),
    updates=(run_parent,),
)
