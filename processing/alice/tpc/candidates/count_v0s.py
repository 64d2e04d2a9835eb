"""tpc_count_v0s: number of V0 candidates of each displaced track of positive charge."""

from hltnode.processing.alice.tpc.candidates.collections import (
    v0_bin,
    v0_bin_begins,
    v0_first_partners,
    v0_partners,
    v0_track,
    v0s_of_track,
)
from hltnode.processing.alice.tpc.candidates.v0_constants import V0_CONSTANTS
from hltnode.processing.alice.tpc.merging.collections import MERGING_PARTS, merged_track_count
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid

count_v0s = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=MERGING_PARTS,
    block_size=128,
    after_all_parts=True,
    reads=(merged_track_count, v0_track, v0_bin, v0_bin_begins, v0_partners),
    updates=(event_flags,),
    writes=(v0s_of_track, v0_first_partners),
    constants=V0_CONSTANTS,
    shared=V0_CONSTANTS,
)
