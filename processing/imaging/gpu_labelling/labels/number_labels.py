"""ccl_number_labels: the number of the component at its first pixel."""

from hltnode.processing.framework.batch import raw_input
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.gpu_labelling.collections import pixel_label, row_roots
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape
from hltnode.processing.imaging.large_images.collections import N_PARTS, part_first_component, part_threshold

number_labels = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.PARTS,
    parts=N_PARTS,
    block_size=128,
    reads=(raw_input, image_shape, image_row_count, image_row_data, part_threshold, part_first_component),
    updates=(row_roots, pixel_label),
)
