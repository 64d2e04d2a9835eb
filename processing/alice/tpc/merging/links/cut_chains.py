"""tpc_cut_chains: chains with more segments than a track can have are cut at their weakest links."""

from hltnode.processing.alice.tpc.collections import track_count
from hltnode.processing.alice.tpc.merging.collections import (
    best_end,
    inner_end,
    longer_segment,
    outer_end,
    shorter_segment,
    weakest_link,
)
from hltnode.processing.alice.tpc.merging.constants import LINK_CONSTANTS
from hltnode.processing.framework.declaration import Algorithm, Grid

cut_chains = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(track_count, inner_end, outer_end, longer_segment, shorter_segment),
    updates=(best_end,),
    writes=(weakest_link,),
    constants={**LINK_CONSTANTS, "chi2_of_gap": 1.0, "max_gap": 400.0, "max_overlap": 5.0},
)
"""The constants are those of tpc_link_segments."""
