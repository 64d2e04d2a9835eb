"""tpc_select_tracks: the tracks of each slice, from tracklets that share clusters, with a fit of each."""

from hltnode.processing.alice.tpc.collections import (
    boxes,
    cluster_charges,
    cluster_inputs,
    cluster_places,
    first_in_bin,
    geometry,
    next_cluster,
    owned_clusters,
    row_counts,
    slice_hit,
    slice_hit_count,
    slice_input,
    slice_track,
    slice_track_count,
    start_count,
    start_hit,
    weights,
)
from hltnode.processing.alice.tpc.tracks.constants import ALLOWED, TRACKLET_CONSTANTS
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.protocol.alice.tpc_banks import N_SLICES

select_tracks = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=128,
    reads=(
        *(geometry, row_counts, boxes, cluster_places, cluster_inputs, first_in_bin, next_cluster),
        *(start_hit, start_count, owned_clusters, weights, slice_input, cluster_charges),
    ),
    updates=(event_flags,),
    writes=(slice_track, slice_hit, slice_track_count, slice_hit_count),
    constants={**TRACKLET_CONSTANTS, "max_fit_chi2": 25.0, "max_shared": 0.0},
    allowed=ALLOWED,
    shared=TRACKLET_CONSTANTS,
)
"""max_fit_chi2: the last fit leaves out clusters with a larger chi2, after its first ten. max_shared: clusters of other
tracklets in a track, at most, as a share of its own clusters in the rows before; 0 for none."""
