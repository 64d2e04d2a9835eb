"""ccl_find_runs: the runs of foreground pixels of each row."""

from hltnode.processing.framework.batch import raw_input
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import row_runs, run_count, run_span
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape

THRESHOLD = 1

find_runs = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(raw_input, image_shape, image_row_count, image_row_data),
    writes=(row_runs, run_count, run_span),
    constants={"threshold": THRESHOLD},
)
"""threshold: a pixel of 8 bits is foreground from this value on. 0 makes every pixel foreground, 256 none. Set pixels
of 1 bit are always foreground."""
