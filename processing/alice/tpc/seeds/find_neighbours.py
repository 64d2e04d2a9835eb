"""tpc_find_neighbours: the two clusters, two rows above and below each cluster, that lie best on a line with it."""

from hltnode.processing.alice.tpc.collections import (
    boxes,
    cluster_places,
    first_in_bin,
    geometry,
    link_down,
    link_up,
    row_counts,
    slice_first,
)
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.protocol.alice.tpc_banks import N_SLICES

find_neighbours = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=256,
    reads=(geometry, slice_first, row_counts, boxes, cluster_places, first_in_bin),
    updates=(event_flags,),
    writes=(link_up, link_down),
    constants={"slope_y": 3.0, "slope_z": 3.2, "margin": 0.4, "max_slope_change": 1.0},
)
"""slope_y, slope_z: greatest slope of a track relative to the line from the origin through a cluster, in the planes of
x and y and of x and z. margin: cm, for the resolution. max_slope_change: greatest difference of the slopes to both
neighbours, the root of the sum of squares in y and z."""
