"""tpc_describe_segments: both ends of each segment, its rows, and its bin."""

from hltnode.processing.alice.tpc.collections import (
    cluster_charges,
    geometry,
    slice_hit_count,
    slice_track_count,
    track,
    track_cluster,
)
from hltnode.processing.alice.tpc.merging.collections import (
    cluster_place,
    cluster_row,
    inner_end,
    outer_end,
    segment_bin,
    segment_first_hit,
    segment_rows,
    track_hit,
)
from hltnode.processing.alice.tpc.merging.constants import FIT_CONSTANTS
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.protocol.alice.tpc_banks import N_SLICES

describe_segments = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=128,
    reads=(
        *(geometry, slice_track_count, slice_hit_count, track, track_cluster),
        *(cluster_place, cluster_row, cluster_charges),
    ),
    writes=(track_hit, segment_first_hit, inner_end, outer_end, segment_rows, segment_bin),
    constants=FIT_CONSTANTS,
    shared=FIT_CONSTANTS,
)
