"""velo_sparse_ccl: super-pixels, bank type 63, to hits by labelling connected components."""

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

sparse_ccl = Algorithm.beside(
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
        Scratch("numbers", U32, per=clusters, width=4),
        Scratch("parents", U32, per=clusters, width=2),
        Scratch("sums", U32, per=clusters, width=3),
    ),
)
"""Its scratch holds the table of velo_masked_clustering, the number of the super-pixel at each place of the table, the
trees of two components of each super-pixel, and the sums of each cluster."""
