"""tpc_collect_tracks: the tracks of all slices of an event, slice by slice."""

from hltnode.processing.alice.tpc.collections import (
    all_tracklet_count,
    slice_hit,
    slice_hit_count,
    slice_track,
    slice_track_count,
    track,
    track_cluster,
    track_cluster_count,
    track_count,
    tracklet_count,
)
from hltnode.processing.framework.declaration import Algorithm, Grid

collect_tracks = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(slice_track, slice_hit, slice_track_count, slice_hit_count, tracklet_count),
    writes=(track, track_count, track_cluster, track_cluster_count, all_tracklet_count),
)
