"""scifi_hit_offsets: places of the SciFi hits of each event."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.raw_data.global_event_cut import scifi_clusters
from hltnode.processing.lhcb.scifi.collections import scifi_bound, scifi_hit_offset, scifi_hits

hit_offsets = Algorithm.beside(
    __file__,
    grid=Grid.ONE,
    block_size=256,
    reads=(scifi_clusters,),
    updates=(event_flags,),
    writes=(scifi_bound, scifi_hit_offset),
    capacities={"max_scifi_hits": scifi_hits.capacity},
)
