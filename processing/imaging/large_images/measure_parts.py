"""ccl_measure_parts: the component of each run, and what each part adds to the features of components."""

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
from hltnode.processing.imaging.large_images.collections import N_PARTS, run_parent

measure_parts = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.PARTS,
    parts=N_PARTS,
    after_all_parts=True,
    block_size=128,
    reads=(raw_input, image_shape, image_row_count, image_row_data, row_runs, run_span, run_parent, component_count),
    updates=(
        run_label,
        *feature_columns,
    ),
)
