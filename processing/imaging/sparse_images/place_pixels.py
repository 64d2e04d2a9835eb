"""ccl_place_pixels: places of the pixels of each sparse image."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import (
    MAX_COMPONENTS,
    MOST_COMPONENTS,
    component_bound,
    component_offset,
)
from hltnode.processing.imaging.images.collections import image_shape
from hltnode.processing.imaging.sparse_images.collections import pixel_count, pixel_offset, pixels

place_pixels = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.ONE,
    block_size=256,
    reads=(image_shape,),
    updates=(event_flags,),
    writes=(pixel_offset, pixel_count, component_offset, component_bound),
    constants={"max_components": MAX_COMPONENTS},
    allowed={"max_components": range(MAX_COMPONENTS, MOST_COMPONENTS + 1)},
    capacities={"places": pixels.capacity},
)
"""max_components: components of an event that have features."""
