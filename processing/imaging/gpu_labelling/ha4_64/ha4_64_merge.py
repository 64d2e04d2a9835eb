"""ccl_ha4_64_merge: HA4, borders of strips, 64 pixels for a warp."""

from hltnode.processing.framework.batch import raw_input
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.gpu_labelling.collections import part_strip_rows, pixel_label
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape
from hltnode.processing.imaging.large_images.collections import N_PARTS, part_threshold

ha4_64_merge = Algorithm.beside(
    __file__,
    prefix="ccl",
    grid=Grid.PARTS,
    parts=N_PARTS,
    after_all_parts=True,
    block_size=128,
    reads=(raw_input, image_shape, image_row_count, image_row_data, part_threshold, part_strip_rows),
    updates=(pixel_label,),
    constants={"interleaved": 1},
)
"""interleaved: as in ha4_64_label. Here odd lanes interleave the votes for one row, even lanes those for the other."""
