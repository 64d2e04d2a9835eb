"""tpc_place_clusters: the places of the clusters of each slice in the batch."""

from hltnode.processing.alice.tpc.collections import first_of_event, slice_first, slice_input
from hltnode.processing.framework.declaration import Algorithm, Grid

place_clusters = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.ONE,
    block_size=256,
    reads=(slice_input,),
    writes=(slice_first, first_of_event),
)
