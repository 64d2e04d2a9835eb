"""ccl_flsl_measure: FLSL, features of components from whole runs."""

from hltnode.processing.framework.batch import raw_input
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import (
    component_count,
    component_offset,
    feature_columns,
)
from hltnode.processing.imaging.gpu_labelling.collections import pixel_edge, pixel_label, row_edge_count
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape
from hltnode.processing.imaging.large_images.collections import N_PARTS

flsl_measure = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.PARTS,
    parts=N_PARTS,
    after_all_parts=True,
    block_size=128,
    reads=(
        raw_input,
        image_shape,
        image_row_count,
        image_row_data,
        row_edge_count,
        pixel_edge,
        pixel_label,
        component_count,
        component_offset,
    ),
    updates=feature_columns,
)
