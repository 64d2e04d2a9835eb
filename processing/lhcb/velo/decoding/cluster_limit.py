"""velo_cluster_limit: events with too many clusters are not reconstructed."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.velo.collections import cluster_bound

cluster_limit = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.ONE,
    block_size=256,
    updates=(event_flags, cluster_bound),
    # docs/physics/velo-tracking.md: 19 minimum-bias events, 1.6 times the largest event of the Upgrade-II sample.
    constants={"max_clusters": 32_768},
)
