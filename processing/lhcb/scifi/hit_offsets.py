"""scifi_hit_offsets: where the SciFi hits of each event lie."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.scifi.collections import scifi_bound, scifi_hit_offset, scifi_hits

hit_offsets = Algorithm.beside(
    __file__,
    grid=Grid.ONE,
    block_size=256,
    updates=(event_flags, scifi_bound),
    writes=(scifi_hit_offset,),
    # docs/physics/scifi.md: twice the words that the global event cut lets pass; real words make 0.9 hits.
    constants={"max_hits": 19_500},
    capacities={"max_scifi_hits": scifi_hits.capacity},
)
