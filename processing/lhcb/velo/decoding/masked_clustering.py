"""velo_masked_clustering: super-pixels, bank type 63, to hits."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.collections import U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.velo.collections import (
    cluster_bound,
    clusters,
    large_events,
    super_pixel_bound,
    unsorted_columns,
    velo_geometry,
)

masked_clustering = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=128,
    large_events=large_events,
    reads=(raw_banks, velo_geometry, cluster_bound, super_pixel_bound),
    updates=(event_flags, *unsorted_columns),
    scratch=(
        Scratch("super_pixel_table", U32, per=clusters, width=4),
        Scratch("super_pixel_places", U32, per=clusters),
    ),
)
"""Its scratch holds a hash table for each event, and a list of the occupied places of that table."""
