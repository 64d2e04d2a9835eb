"""tpc_find_slices: the banks and the number of clusters of each slice, and flags for banks that cannot be used."""

from hltnode.processing.alice.tpc.collections import cluster_count, event_number, slice_input
from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid

find_slices = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(raw_banks,),
    updates=(event_flags,),
    writes=(slice_input, cluster_count, event_number),
)
