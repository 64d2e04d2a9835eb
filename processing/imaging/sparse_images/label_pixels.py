"""ccl_label_pixels: the component of each pixel of a sparse image, and the features of components."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.collections import U64
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.imaging.components.collections import (
    all_component_count,
    component_bound,
    component_count,
    feature_columns,
)
from hltnode.processing.imaging.images.collections import image_shape
from hltnode.processing.imaging.sparse_images.collections import (
    pixel_count,
    pixel_label,
    pixel_position,
    pixel_total,
    pixels,
)

METHODS = {"row_table": 0, "ordered": 1, "super_pixels": 2, "flood_fill": 3}
"""How a CPU labels pixels; the results are equal."""

label_pixels = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(raw_banks, image_shape, pixel_total, pixel_count, component_bound),
    updates=(event_flags,),
    writes=(
        *(pixel_position, pixel_label, component_count, all_component_count),
        *feature_columns,
    ),
    scratch=(Scratch("keys", U64, per=pixels, width=4),),
    constants={"diagonal": 1, "method": METHODS["row_table"]},
    allowed={"method": range(len(METHODS))},
)
"""diagonal: 0: pixels touch along edges (4-connected); any other number: also at corners (8-connected). method: one of
METHODS. A GPU has one method. Super-pixels are 8-connected by nature: without corners the ordered method takes their
place."""
