"""velo_masked_clustering: super-pixels, bank type 63, to hits (kernels/velo/masked_clustering.cuh)."""

from hltnode.processing.hlt1 import velo_buffers as velo
from hltnode.processing.hlt1.declaration import (
    Algorithm,
    Grid,
    batch_header,
    event_flags,
    event_rows,
    mep_rows,
    mfp_rows,
    raw_input,
)
from hltnode.processing.hlt1.fragment_offsets import fragment_offset, fragment_size, fragment_type

velo_masked_clustering = Algorithm(
    name="velo_masked_clustering",
    grid=Grid.EVENTS,
    block_size=128,
    inputs=(
        batch_header,
        raw_input,
        mfp_rows,
        mep_rows,
        event_rows,
        fragment_offset,
        fragment_size,
        fragment_type,
        velo.velo_geometry,
        velo.velo_cluster_bound,
        velo.velo_super_pixel_bound,
        velo.velo_cluster_offset,
    ),
    updates=(
        event_flags,
        velo.velo_unsorted_x,
        velo.velo_unsorted_y,
        velo.velo_unsorted_z,
        velo.velo_unsorted_phi,
        velo.velo_unsorted_id,
        velo.velo_unsorted_module_pair,
        velo.velo_unsorted_count,
    ),
    outputs=(velo.velo_super_pixel_table,),
)
