"""ccl_playne_label: a label for each pixel, joined where no other pixel does it."""

from hltnode.processing.framework.batch import raw_input
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.find_runs import THRESHOLD
from hltnode.processing.imaging.gpu_labelling.collections import pixel_label
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape
from hltnode.processing.imaging.large_images.collections import N_PARTS, part_reach, part_threshold

playne_label = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.PARTS,
    parts=N_PARTS,
    block_size=128,
    reads=(raw_input, image_shape, image_row_count, image_row_data),
    writes=(pixel_label, part_threshold, part_reach),
    constants={"threshold": THRESHOLD, "diagonal": 1},
)
"""threshold, diagonal: as in find_runs and label_runs; later kernels take them from the columns of the parts."""
