"""kalman_full_fit: long tracks from the end of the VELO through their SciFi hits; q/p with its error, and chi2."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.kalman.collections import long_fitted_qop, long_full_chi2, long_qop_error
from hltnode.processing.lhcb.long_tracks.collections import long_count, long_hits, long_qop, long_state, long_velo_track
from hltnode.processing.lhcb.long_tracks.parameters import long_track_parameters
from hltnode.processing.lhcb.scifi.collections import scifi_x, scifi_z
from hltnode.processing.lhcb.velo.collections import end_state

full_fit = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        long_track_parameters,
        *end_state.values(),
        long_count,
        long_velo_track,
        long_qop,
        long_state["tx"],
        long_hits,
        scifi_x,
        scifi_z,
    ),
    writes=(long_fitted_qop, long_qop_error, long_full_chi2),
)
