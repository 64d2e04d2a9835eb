"""tpc_sort_segments: the segments of an event with their slopes and curvatures, by bins."""

from hltnode.processing.alice.tpc.collections import track_count
from hltnode.processing.alice.tpc.merging.collections import (
    bin_begins,
    inner_end,
    near_curvature,
    near_curvature_variance,
    near_slope,
    near_slope_variance,
    outer_end,
    segment_bin,
    sorted_segments,
)
from hltnode.processing.framework.declaration import Algorithm, Grid

sort_segments = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(track_count, segment_bin, inner_end, outer_end),
    writes=(
        *(bin_begins, sorted_segments),
        *(near_slope, near_curvature, near_slope_variance, near_curvature_variance),
    ),
)
