"""ccl_place_images: places of the rows and of the runs of each image."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import (
    MAX_COMPONENTS,
    MOST_COMPONENTS,
    component_bound,
    component_offset,
    run_bound,
    run_offset,
    runs,
)
from hltnode.processing.imaging.images.collections import (
    MAX_PIXELS,
    MOST_PIXELS,
    image_row_count,
    image_row_offset,
    image_rows,
    image_shape,
)

place_images = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.ONE,
    block_size=256,
    reads=(image_shape,),
    updates=(event_flags,),
    writes=(image_row_offset, image_row_count, run_offset, run_bound, component_offset, component_bound),
    constants={"max_components": MAX_COMPONENTS, "max_pixels": MAX_PIXELS},
    allowed={"max_components": range(MAX_COMPONENTS, MOST_COMPONENTS + 1), "max_pixels": range(1, MOST_PIXELS + 1)},
    capacities={"row_places": image_rows.capacity, "run_places": runs.capacity},
)
"""max_components: components of an event that have features. max_pixels: pixels of an image that is labelled. The
memory of a batch grows with both."""
