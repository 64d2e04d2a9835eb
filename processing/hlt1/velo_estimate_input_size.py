"""velo_estimate_input_size: upper bound of the clusters of each event (kernels/velo/estimate_input_size.cuh)."""

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
from hltnode.processing.hlt1.velo_buffers import velo_cluster_bound, velo_super_pixel_bound

velo_estimate_input_size = Algorithm(
    name="velo_estimate_input_size",
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
    ),
    updates=(event_flags,),
    outputs=(velo_cluster_bound, velo_super_pixel_bound),
)
