"""tpc_link_segments: the end of another segment that continues each end of a segment best."""

from hltnode.processing.alice.tpc.collections import track_count
from hltnode.processing.alice.tpc.merging.collections import (
    MERGING_PARTS,
    best_end,
    bin_begins,
    inner_end,
    longer_segment,
    near_curvature,
    near_curvature_variance,
    near_slope,
    near_slope_variance,
    outer_end,
    segment_bin,
    shorter_segment,
    sorted_segments,
)
from hltnode.processing.alice.tpc.merging.constants import LINK_CONSTANTS
from hltnode.processing.framework.declaration import Algorithm, Grid

link_segments = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=MERGING_PARTS,
    after_all_parts=True,
    block_size=128,
    reads=(
        *(track_count, inner_end, outer_end, segment_bin, bin_begins, sorted_segments),
        *(near_slope, near_curvature, near_slope_variance, near_curvature_variance),
        *(longer_segment, shorter_segment),
    ),
    writes=(best_end,),
    constants={
        **LINK_CONSTANTS,
        "max_chi2": 40.0,
        "chi2_of_gap": 1.0,
        "max_gap": 400.0,
        "max_overlap": 5.0,
        "max_turning_radius": 130.0,
    },
)
"""max_chi2: of five differences. chi2_of_gap: for each cm of the way between two ends, for the choice of the best one.
max_gap, max_overlap: cm of the way between two ends, and back from an end. max_turning_radius: cm, of circles that come
back to the inner side of the TPC; larger ones reach its outer wall."""
