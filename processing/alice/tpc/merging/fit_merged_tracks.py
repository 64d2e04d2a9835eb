"""tpc_fit_merged_tracks: the parameters of merged tracks."""

from hltnode.processing.alice.tpc.collections import geometry, track, track_cluster
from hltnode.processing.alice.tpc.merging.collections import (
    MERGING_PARTS,
    cluster_place,
    cluster_row,
    merged_first_segment,
    merged_run,
    merged_segment,
    merged_size,
    merged_track,
    merged_track_count,
    segment_first_hit,
)
from hltnode.processing.alice.tpc.merging.constants import FIT_CONSTANTS
from hltnode.processing.framework.declaration import Algorithm, Grid

fit_merged_tracks = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=MERGING_PARTS,
    block_size=128,
    reads=(
        *(geometry, track, track_cluster, segment_first_hit, cluster_place, cluster_row),
        *(merged_track_count, merged_first_segment, merged_size, merged_run, merged_segment),
    ),
    writes=(merged_track,),
    constants=FIT_CONSTANTS,
    shared=FIT_CONSTANTS,
)
