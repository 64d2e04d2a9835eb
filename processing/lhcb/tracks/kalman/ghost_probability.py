"""kalman_ghost_probability: probability that a long track belongs to no particle."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.tracks.kalman.collections import (
    long_beam_state,
    long_chi2,
    long_end_state,
    long_fitted_qop,
    long_full_chi2,
    long_ghost_probability,
    long_qop_error,
    long_ut_chi2,
)
from hltnode.processing.lhcb.tracks.kalman.ghost_network import ghost_network
from hltnode.processing.lhcb.tracks.long.collections import (
    long_count,
    long_hit_count,
    long_origin,
    long_qop,
    long_state,
    long_ut_hits,
    long_velo_track,
)
from hltnode.processing.lhcb.velo.collections import track_hit_count

ghost_probability = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        ghost_network,
        track_hit_count,
        long_count,
        long_velo_track,
        long_origin,
        long_qop,
        long_hit_count,
        long_ut_hits,
        *(long_state[name] for name in ("y", "tx", "ty")),
        *(long_end_state[name] for name in ("y", "tx", "ty")),
        *(long_beam_state[name] for name in ("tx", "ty")),
        long_fitted_qop,
        long_qop_error,
        long_chi2,
        long_full_chi2,
        long_ut_chi2,
    ),
    writes=(long_ghost_probability,),
)
