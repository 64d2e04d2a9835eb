"""velo_estimate_input_size: upper bound of the clusters of each event."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.velo.collections import cluster_bound, super_pixel_bound

estimate_input_size = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=128,
    reads=(raw_banks,),
    updates=(event_flags,),
    writes=(cluster_bound, super_pixel_bound),
)
