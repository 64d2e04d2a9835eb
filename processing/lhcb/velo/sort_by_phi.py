"""velo_sort_by_phi: hits by phi inside each module pair (kernels/velo/sort_by_phi.cuh)."""

from hltnode.processing.framework.declaration import Algorithm, Grid, batch_header, event_flags
from hltnode.processing.lhcb.velo import collections as velo

velo_sort_by_phi = Algorithm(
    name="velo_sort_by_phi",
    grid=Grid.EVENTS,
    block_size=128,
    inputs=(batch_header, velo.velo_cluster_offset, *velo.velo_unsorted),
    updates=(event_flags,),
    outputs=(
        velo.velo_hit_x,
        velo.velo_hit_y,
        velo.velo_hit_z,
        velo.velo_hit_phi,
        velo.velo_hit_id,
        velo.velo_cluster_count,
        velo.velo_module_pair_offset,
        velo.velo_phi_bin_offset,
        velo.velo_sort_key,
        velo.velo_sort_index,
    ),
)
