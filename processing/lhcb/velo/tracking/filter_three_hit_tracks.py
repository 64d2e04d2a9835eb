"""velo_filter_three_hit_tracks: straight triplets of free hits."""

from hltnode.processing.framework.collections import U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.velo.collections import (
    cluster_count,
    clusters,
    hit_used,
    hit_x,
    hit_y,
    hit_z,
    large_events,
    seed_count,
    seed_hits,
)

filter_three_hit_tracks = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=64,
    large_events=large_events,
    reads=(hit_x, hit_y, hit_z, cluster_count, seed_count, hit_used),
    updates=(seed_hits,),
    scratch=(Scratch("hit_owner", U32, per=clusters),),
    constants={"max_chi2": 18.0},
)
"""max_chi2: of the straight-line fit, per degree of freedom."""
