"""velo_estimate_input_size: upper bound of the clusters of each event (kernels/velo/estimate_input_size.cuh)."""

from hltnode.processing.framework.declaration import Algorithm, Grid, event_flags
from hltnode.processing.lhcb.raw_data.fragment_offsets import raw_fragments
from hltnode.processing.lhcb.velo.collections import velo_cluster_bound, velo_super_pixel_bound

velo_estimate_input_size = Algorithm(
    name="velo_estimate_input_size",
    grid=Grid.EVENTS,
    block_size=128,
    inputs=raw_fragments,
    updates=(event_flags,),
    outputs=(velo_cluster_bound, velo_super_pixel_bound),
)
