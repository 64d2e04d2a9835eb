"""ccl_place_labels: the places of the label image and of its chunks."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.gpu_labelling.collections import (
    chunk_bound,
    chunk_offset,
    label_chunks,
    pixel_bound,
    pixel_offset,
    pixels,
)
from hltnode.processing.imaging.images.collections import image_row_count, image_shape

place_labels = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.ONE,
    block_size=256,
    reads=(image_shape, image_row_count),
    updates=(event_flags,),
    writes=(pixel_offset, pixel_bound, chunk_offset, chunk_bound),
    capacities={"pixel_places": pixels.capacity, "chunk_places": label_chunks.capacity},
)
