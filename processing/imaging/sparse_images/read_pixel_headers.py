"""ccl_read_pixel_headers: the shape of each sparse image, and flags for banks that are wrong."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.images.collections import event_number, image_shape
from hltnode.processing.imaging.sparse_images.collections import pixel_total

read_pixel_headers = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(raw_banks,),
    updates=(event_flags,),
    writes=(image_shape, event_number, pixel_total),
)
