"""ccl_count_labels: how many components and runs begin in each row and each part."""

from hltnode.processing.framework.batch import raw_input
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.gpu_labelling.collections import pixel_label, row_roots
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape
from hltnode.processing.imaging.large_images.collections import N_PARTS, part_root_count, part_run_count, part_threshold

count_labels = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.PARTS,
    parts=N_PARTS,
    after_all_parts=True,
    block_size=128,
    reads=(raw_input, image_shape, image_row_count, image_row_data, part_threshold, pixel_label),
    writes=(row_roots, part_root_count, part_run_count),
)
