"""matching_mark_used_hits: the SciFi hits of the long tracks found so far."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.scifi.collections import scifi_count
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_hits, scifi_used

mark_used_hits = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(scifi_count, long_count, long_hits),
    writes=(scifi_used,),
)
