"""tpc_keep_places: row and place of each cluster by its number in the event."""

from hltnode.processing.alice.tpc.collections import boxes, cluster_inputs, cluster_places, row_counts
from hltnode.processing.alice.tpc.merging.collections import cluster_place, cluster_row
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.protocol.alice.tpc_banks import N_SLICES

keep_places = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=128,
    reads=(row_counts, boxes, cluster_places, cluster_inputs),
    writes=(cluster_place, cluster_row),
)
