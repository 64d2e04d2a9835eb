"""velo_decode_retina_clusters: bank type 73 to hits (kernels/velo/decode_retina_clusters.cuh)."""

from hltnode.processing.framework.declaration import Algorithm, Grid, event_flags
from hltnode.processing.lhcb.raw_data.fragment_offsets import raw_fragments
from hltnode.processing.lhcb.velo import collections as velo

velo_decode_retina_clusters = Algorithm(
    name="velo_decode_retina_clusters",
    grid=Grid.EVENTS,
    block_size=128,
    inputs=(
        *raw_fragments,
        velo.velo_geometry,
        velo.velo_cluster_bound,
        velo.velo_cluster_offset,
    ),
    updates=(event_flags,),
    outputs=velo.velo_unsorted,
)
