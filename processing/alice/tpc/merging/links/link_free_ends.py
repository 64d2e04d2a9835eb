"""tpc_link_free_ends: links of segments that end beside each other, whatever their bins."""

from hltnode.processing.alice.tpc.merging.collections import (
    MERGING_PARTS,
    best_end,
    cell_begins,
    free_end,
    inner_end,
    outer_end,
)
from hltnode.processing.alice.tpc.merging.constants import LINK_CONSTANTS
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid

link_free_ends = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=MERGING_PARTS,
    block_size=128,
    after_all_parts=True,
    reads=(inner_end, outer_end, free_end, cell_begins),
    updates=(best_end, event_flags),
    constants={
        **LINK_CONSTANTS,
        "max_chi2": 40.0,
        "chi2_of_gap": 1.0,
        "max_gap": 400.0,
        "max_overlap": 5.0,
        "max_turning_radius": 130.0,
        "piece_distance": 3.0,
        "piece_z": 1.5,
        "piece_slope": 0.07,
        "piece_variance": 2.0,
    },
)
"""max_chi2: of five differences, in both directions; 0 makes no such link. piece_distance, piece_z: cm from a helix to
both ends of a segment that is linked by place, 0 for none; piece_slope: difference of their slopes. piece_variance: of
the curvature of this segment over that of the helix, at least. The others are those of tpc_link_segments."""
