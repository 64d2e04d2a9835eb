"""kalman_smooth_velo: smoothed states of long tracks at each of their VELO hits, with unbiased residuals and chi2."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.tracks.kalman.collections import (
    long_fitted_qop,
    smoothed_state,
    smoothed_state_count,
    velo_field,
)
from hltnode.processing.lhcb.tracks.kalman.velo_constants import VELO_FILTER
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_velo_track
from hltnode.processing.lhcb.velo.collections import hit_id, hit_x, hit_y, hit_z, track_hit_count, track_hits

smooth_velo = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        velo_field,
        long_count,
        long_velo_track,
        long_fitted_qop,
        track_hit_count,
        track_hits,
        hit_x,
        hit_y,
        hit_z,
        hit_id,
    ),
    updates=(event_flags,),
    writes=(smoothed_state_count, smoothed_state),
    constants=VELO_FILTER,
)
"""The constants of VELO_FILTER, without those of the path to the beam line."""
