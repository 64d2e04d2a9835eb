"""forward_select_tracks: the forward candidates that become long tracks."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.tracks.long.collections import (
    candidate_columns,
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
    scifi_owner,
)
from hltnode.processing.lhcb.velo.collections import track_count

select_tracks = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(*candidate_columns, scifi_owner, track_count),
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
    # docs/physics/long-tracks.md
    constants={"max_shared_fraction": 0.4},
)
