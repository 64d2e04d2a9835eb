"""ut_decode_banks: UT raw banks to hits, sorted by sector group."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.collections import U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.ut.collections import (
    ut_bound,
    ut_count,
    ut_geometry,
    ut_group_offset,
    ut_hit_offset,
    ut_hits,
    ut_id,
    ut_sector_offset,
    ut_weight,
    ut_x,
    ut_y_begin,
    ut_y_end,
    ut_z,
)

decode_banks = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(raw_banks, ut_geometry, ut_bound, ut_hit_offset),
    updates=(event_flags,),
    writes=(
        ut_count,
        ut_group_offset,
        ut_sector_offset,
        ut_x,
        ut_z,
        ut_y_begin,
        ut_y_end,
        ut_weight,
        ut_id,
    ),
    scratch=(Scratch("unsorted", U32, per=ut_hits), Scratch("laid_out", U32, per=ut_hits)),
)
