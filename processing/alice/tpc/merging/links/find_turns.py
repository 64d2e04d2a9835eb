"""tpc_find_turns: the chain that continues the helix of a segment of a soft particle."""

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
    turn_chain,
    turn_score,
)
from hltnode.processing.alice.tpc.merging.constants import LINK_CONSTANTS
from hltnode.processing.framework.declaration import Algorithm, Grid

find_turns = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=MERGING_PARTS,
    after_all_parts=True,
    block_size=128,
    reads=(
        *(track_count, inner_end, outer_end, segment_bin, bin_begins, sorted_segments),
        *(near_slope, near_curvature, near_slope_variance, near_curvature_variance),
        *(longer_segment, shorter_segment, best_end),
    ),
    writes=(turn_score, turn_chain),
    constants={
        **LINK_CONSTANTS,
        "max_turn_chi2": 5.0,
        "chi2_of_gap": 1.0,
        "max_gap": 400.0,
        "max_overlap": 5.0,
        "max_turning_radius": 130.0,
    },
)
"""max_turn_chi2: of five differences, in both directions. The others are those of tpc_link_segments; only segments on
circles below max_turning_radius take part."""
