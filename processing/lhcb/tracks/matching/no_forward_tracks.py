"""matching_no_forward_tracks: empty long tracks and no used hits, for a sequence without forward tracking."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.scifi.collections import scifi_count
from hltnode.processing.lhcb.tracks.long.collections import (
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
    scifi_used,
)

no_forward_tracks = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(scifi_count,),
    writes=(
        scifi_used,
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
)
