"""ccl_measure_components: area, sums of coordinates, box and intensity of each component."""

from hltnode.processing.framework.batch import raw_input
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.collections import (
    component_count,
    feature_columns,
    row_runs,
    run_label,
    run_span,
)
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape

measure_components = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(raw_input, image_shape, image_row_count, image_row_data, row_runs, run_span, run_label, component_count),
    writes=feature_columns,
)
