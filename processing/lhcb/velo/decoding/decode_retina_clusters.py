"""velo_decode_retina_clusters: bank type 73 to hits."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.velo.collections import (
    cluster_bound,
    cluster_offset,
    large_events,
    super_pixel_bound,
    unsorted_columns,
    velo_geometry,
)

decode_retina_clusters = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=128,
    large_events=large_events,
    reads=(raw_banks, velo_geometry, cluster_bound, super_pixel_bound, cluster_offset),
    updates=(event_flags,),
    writes=unsorted_columns,
)
