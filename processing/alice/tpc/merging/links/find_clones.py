"""tpc_find_clones: second segments of a track in the same rows of a slice."""

from hltnode.processing.alice.tpc.collections import slice_track_count, track
from hltnode.processing.alice.tpc.merging.collections import (
    bin_begins,
    inner_end,
    longer_segment,
    segment_bin,
    segment_rows,
    shorter_segment,
    sorted_segments,
)
from hltnode.processing.alice.tpc.merging.constants import LINK_CONSTANTS
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.protocol.alice.tpc_banks import N_SLICES

find_clones = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=128,
    reads=(slice_track_count, track, inner_end, segment_rows, segment_bin, bin_begins, sorted_segments),
    writes=(longer_segment, shorter_segment),
    constants={**LINK_CONSTANTS, "max_clone_gap": 200.0, "max_chi2": 25.0},
)
"""max_clone_gap: cm of the way between the inner ends. max_chi2: of five differences."""
