"""ccl_place_images: places of the rows and of the runs of each image."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import run_bound, run_offset, runs
from hltnode.processing.imaging.images.collections import image_row_count, image_row_offset, image_rows, image_shape

place_images = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.ONE,
    block_size=256,
    reads=(image_shape,),
    updates=(event_flags,),
    writes=(image_row_offset, image_row_count, run_offset, run_bound),
    capacities={"row_places": image_rows.capacity, "run_places": runs.capacity},
)
