"""ccl_read_headers: the shape of the image of each event, and flags for strips that are wrong."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.images.collections import event_number, image_shape

read_headers = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(raw_banks,),
    updates=(event_flags,),
    writes=(image_shape, event_number),
)
