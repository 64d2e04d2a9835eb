"""ecal_find_clusters: clusters of cells around local maxima."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.calorimeter.collections import (
    cluster_count,
    cluster_e19,
    cluster_energy,
    cluster_et,
    cluster_position,
    cluster_seed,
    ecal_adc,
    ecal_cell_count,
    ecal_geometry,
)

find_clusters = Algorithm.beside(
    __file__,
    prefix="ecal",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(ecal_geometry, ecal_adc, ecal_cell_count),
    updates=(event_flags,),
    writes=(cluster_count, cluster_seed, *cluster_position.values(), cluster_energy, cluster_et, cluster_e19),
    # docs/physics/calorimeter.md.
    constants={"min_seed_adc": 50, "min_neighbour_adc": 10, "share": 1},
    allowed={"min_seed_adc": range(1, 1 << 12), "min_neighbour_adc": range(1 << 12), "share": range(2)},
)
"""ADC counts: a seed has at least `min_seed_adc`, a neighbour in a cluster more than `min_neighbour_adc`. `share`: 1 to
share a cell between the clusters that have it, 0 to give it to each of them."""
