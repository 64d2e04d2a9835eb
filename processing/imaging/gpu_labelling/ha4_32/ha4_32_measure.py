"""ccl_ha4_32_measure: HA4, features of components from runs in chunks of 32 pixels."""

from hltnode.processing.framework.batch import raw_input
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import (
    component_count,
    component_offset,
    feature_columns,
)
from hltnode.processing.imaging.gpu_labelling.collections import pixel_label
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape
from hltnode.processing.imaging.large_images.collections import N_PARTS, part_threshold

ha4_32_measure = Algorithm.beside(
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
        part_threshold,
        pixel_label,
        component_count,
        component_offset,
    ),
    updates=feature_columns,
)
