"""tpc_clean_links: the link up of each cluster, if that neighbour links back."""

from hltnode.processing.alice.tpc.collections import boxes, link_down, link_up, next_cluster, row_counts
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.protocol.alice.tpc_banks import N_SLICES

clean_links = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=256,
    reads=(row_counts, boxes, link_up, link_down),
    writes=(next_cluster,),
)
