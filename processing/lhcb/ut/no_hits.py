"""ut_no_hits: empty UT hits for all events, for a sequence without the UT."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.ut.collections import (
    ut_count,
    ut_hit_offset,
    ut_id,
    ut_weight,
    ut_x,
    ut_y_begin,
    ut_y_end,
    ut_z,
)

no_hits = Algorithm.beside(
    __file__,
    grid=Grid.ONE,
    block_size=256,
    writes=(ut_hit_offset, ut_count, ut_x, ut_z, ut_y_begin, ut_y_end, ut_weight, ut_id),
)
