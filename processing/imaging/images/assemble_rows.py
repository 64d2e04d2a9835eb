"""ccl_assemble_rows: the place of each row of the image in the raw input."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape

assemble_rows = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(raw_banks, image_shape, image_row_count),
    updates=(event_flags,),
    writes=(image_row_data,),
)
