"""tpc_find_v0s: V0 candidates: pairs of displaced tracks of opposite charge."""

from hltnode.processing.alice.tpc.candidates.collections import (
    v0,
    v0_bin,
    v0_bin_begins,
    v0_count,
    v0_first_partners,
    v0_partners,
    v0_track,
    v0s_of_track,
)
from hltnode.processing.alice.tpc.candidates.v0_constants import V0_CONSTANTS
from hltnode.processing.alice.tpc.merging.collections import merged_track_count
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid

find_v0s = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(merged_track_count, v0_track, v0_bin, v0_bin_begins, v0_partners, v0s_of_track, v0_first_partners),
    updates=(event_flags,),
    writes=(v0, v0_count),
    constants=V0_CONSTANTS,
    shared=V0_CONSTANTS,
)
