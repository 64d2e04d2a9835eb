"""ut_select_tracks: selection of the VELO-UT tracks."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.ut.collections import (
    candidate_fit,
    candidate_hit_count,
    candidate_hits,
    candidate_quality,
    ut_count,
    ut_hits,
    ut_track_count,
    ut_track_hit_count,
    ut_track_hits,
    ut_track_qop,
    ut_track_tx,
    ut_track_velo,
    ut_track_x,
    ut_track_z,
)
from hltnode.processing.lhcb.velo.collections import track_count

select_tracks = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        track_count,
        ut_count,
        candidate_hit_count,
        candidate_hits,
        candidate_quality,
        *candidate_fit.values(),
    ),
    updates=(event_flags,),
    writes=(
        ut_track_count,
        ut_track_velo,
        ut_track_qop,
        ut_track_x,
        ut_track_z,
        ut_track_tx,
        ut_track_hit_count,
        ut_track_hits,
    ),
    scratch=(Scratch("owner", U32, per=ut_hits),),
    # docs/physics/ut.md
    constants={"max_shared_hits": 1},
)
