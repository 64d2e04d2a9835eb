"""ccl_ha4_otf_label: HA4, labels of strips whose features move with them."""

from hltnode.processing.framework.batch import raw_input
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.components.find_runs import THRESHOLD
from hltnode.processing.imaging.gpu_labelling.collections import label_features, part_strip_rows, pixel_label
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape
from hltnode.processing.imaging.large_images.collections import N_PARTS, part_threshold

ha4_otf_label = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.PARTS,
    parts=N_PARTS,
    block_size=128,
    reads=(raw_input, image_shape, image_row_count, image_row_data),
    writes=(pixel_label, label_features, part_threshold, part_strip_rows),
    constants={"threshold": THRESHOLD},
)
"""threshold: as in find_runs."""
