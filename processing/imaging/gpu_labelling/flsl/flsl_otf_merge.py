"""ccl_flsl_otf_merge: FLSL, runs of different parts, joined where they touch; features move with labels."""

from hltnode.processing.framework.batch import raw_input
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.imaging.gpu_labelling.collections import (
    chunk_edges,
    label_features,
    pixel_edge,
    pixel_label,
    row_edge_count,
)
from hltnode.processing.imaging.images.collections import image_row_count, image_row_data, image_shape
from hltnode.processing.imaging.large_images.collections import N_PARTS, part_reach

flsl_otf_merge = Algorithm.beside(
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
        part_reach,
        row_edge_count,
        pixel_edge,
        chunk_edges,
    ),
    updates=(pixel_label, label_features),
)
