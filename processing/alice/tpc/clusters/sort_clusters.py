"""tpc_sort_clusters: the clusters of each slice, sorted by row, bin and place."""

from hltnode.processing.alice.tpc.collections import (
    boxes,
    cluster_charges,
    cluster_inputs,
    cluster_places,
    first_in_bin,
    geometry,
    row_counts,
    slice_input,
)
from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.protocol.alice.tpc_banks import N_SLICES

sort_clusters = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=256,
    reads=(raw_banks, geometry, slice_input),
    updates=(event_flags,),
    writes=(row_counts, boxes, cluster_places, cluster_inputs, cluster_charges, first_in_bin),
)
