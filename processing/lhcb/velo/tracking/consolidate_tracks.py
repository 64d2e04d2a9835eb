"""velo_consolidate_tracks: the remaining tracks, without gaps."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.velo.collections import (
    candidate_count,
    cluster_bound,
    cluster_offset,
    large_events,
    seed_count,
    seed_hits,
    track_count,
    track_hit_count,
    track_hits,
)

consolidate_tracks = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=64,
    large_events=large_events,
    reads=(cluster_bound, cluster_offset, candidate_count, seed_hits, seed_count),
    updates=(event_flags, track_hits, track_hit_count),
    writes=(track_count,),
)
