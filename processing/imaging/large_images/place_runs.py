"""ccl_place_runs: the number of the first run of each part."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import run_count
from hltnode.processing.imaging.large_images.collections import part_first_run, part_run_count

place_runs = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(part_run_count,),
    writes=(part_first_run, run_count),
)
