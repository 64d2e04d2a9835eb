"""velo_masked_clustering: super-pixels, bank type 63, to hits (kernels/velo/masked_clustering.cuh)."""

from hltnode.processing.framework.declaration import Algorithm, Grid, event_flags
from hltnode.processing.lhcb.raw_data.fragment_offsets import raw_fragments
from hltnode.processing.lhcb.velo import collections as velo

velo_masked_clustering = Algorithm(
    name="velo_masked_clustering",
    grid=Grid.EVENTS,
    block_size=128,
    inputs=(
        *raw_fragments,
        velo.velo_geometry,
        velo.velo_cluster_bound,
        velo.velo_super_pixel_bound,
        velo.velo_cluster_offset,
    ),
    updates=(event_flags, *velo.velo_unsorted),
    outputs=(velo.velo_super_pixel_table,),
)
