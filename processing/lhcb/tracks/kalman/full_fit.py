"""kalman_full_fit: long tracks through all their hits; q/p with its error, chi2, the state behind the last hit."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.scifi.collections import scifi_x, scifi_z
from hltnode.processing.lhcb.tracks.kalman.collections import (
    long_end_state,
    long_fitted_qop,
    long_full_chi2,
    long_qop_error,
    long_ut_chi2,
    velo_field,
)
from hltnode.processing.lhcb.tracks.kalman.velo_constants import VELO_FILTER
from hltnode.processing.lhcb.tracks.long.collections import (
    long_count,
    long_hits,
    long_qop,
    long_state,
    long_ut_hits,
    long_velo_track,
)
from hltnode.processing.lhcb.tracks.long.parameters import long_track_parameters
from hltnode.processing.lhcb.ut.collections import ut_weight, ut_x, ut_z
from hltnode.processing.lhcb.velo.collections import hit_x, hit_y, hit_z, track_hit_count, track_hits

full_fit = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        long_track_parameters,
        velo_field,
        long_count,
        long_velo_track,
        long_qop,
        long_state["tx"],
        long_ut_hits,
        long_hits,
        track_hit_count,
        track_hits,
        hit_x,
        hit_y,
        hit_z,
        ut_x,
        ut_z,
        ut_weight,
        scifi_x,
        scifi_z,
    ),
    writes=(long_fitted_qop, long_qop_error, long_full_chi2, long_ut_chi2, *long_end_state.values()),
    constants={
        **VELO_FILTER,
        "start_kink_variance": 1e-4,
        "oblique": 2.0,
        "ut_lever_error": 0.15,
        "scifi_layer_slope": 2.2e-6,
        "scifi_hit_variance": 0.0092,
        "scifi_oblique_variance": 0.06,
        "momentum_error": 0.0013,
        "energy_loss_error": 6.0,
    },
)
"""In addition to VELO_FILTER: variance of the kink at the start; `oblique`: scattering grows with 1 + oblique (tx² +
ty²); error of x at the UT over the kink (mm); variance of the slope from a SciFi layer for 1 GeV; variance of a SciFi
hit (mm²), and its increase for tx = 1; relative error of p from the parametrisation, and the spread of the energy loss
(MeV)."""
