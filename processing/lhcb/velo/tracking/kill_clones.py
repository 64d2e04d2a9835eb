"""velo_kill_clones: if two tracks share most of their hits, one is removed."""

from hltnode.processing.framework.collections import U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.velo.collections import (
    candidate_count,
    cluster_count,
    clusters,
    large_events,
    track_hit_count,
    track_hits,
)

kill_clones = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=64,
    large_events=large_events,
    reads=(cluster_count, candidate_count, track_hits),
    updates=(track_hit_count,),
    scratch=(Scratch("hit_owner", U32, per=clusters),),
    constants={"max_shared_fraction": 0.7},
)
