"""long_tracks_select_forward: the forward candidates that become long tracks."""

from hltnode.processing.framework.collections import U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.long_tracks.collections import (
    candidate_hit_count,
    candidate_hits,
    candidate_quality,
    candidate_state,
    long_count,
    long_hit_count,
    long_hits,
    long_origin,
    long_qop,
    long_quality,
    long_state,
    long_ut_hits,
    long_ut_track,
    long_velo_track,
)
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_hits
from hltnode.processing.lhcb.ut.collections import ut_track_count, ut_track_hits, ut_track_velo

select_forward = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        candidate_hit_count,
        candidate_hits,
        candidate_quality,
        *candidate_state.values(),
        scifi_count,
        ut_track_count,
        ut_track_velo,
        ut_track_hits,
    ),
    writes=(
        long_count,
        long_velo_track,
        long_ut_track,
        long_origin,
        long_qop,
        *long_state.values(),
        long_quality,
        long_hit_count,
        long_hits,
        long_ut_hits,
    ),
    scratch=(Scratch("owner", U32, per=scifi_hits),),
    # docs/physics/long-tracks.md
    constants={"max_quality": 60.0, "max_shared_fraction": 0.4},
)
