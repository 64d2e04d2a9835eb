"""ut_hit_offsets: places of the UT hits of each event."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.ut.collections import ut_bound, ut_hit_offset, ut_hits

hit_offsets = Algorithm.beside(
    __file__,
    grid=Grid.ONE,
    block_size=256,
    updates=(event_flags, ut_bound),
    writes=(ut_hit_offset,),
    capacities={"max_ut_hits": ut_hits.capacity},
)
