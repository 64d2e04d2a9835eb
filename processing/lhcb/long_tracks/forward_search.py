"""long_tracks_forward_search: the SciFi hits that continue each VELO-UT track best."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.long_tracks.collections import (
    candidate_hit_count,
    candidate_hits,
    candidate_quality,
    candidate_state,
)
from hltnode.processing.lhcb.long_tracks.parameters import long_track_parameters
from hltnode.processing.lhcb.scifi.collections import scifi_x, scifi_z, scifi_zone_offset
from hltnode.processing.lhcb.ut.collections import (
    ut_track_count,
    ut_track_hits,
    ut_track_qop,
    ut_track_velo,
    ut_weight,
    ut_x,
    ut_z,
)
from hltnode.processing.lhcb.velo.collections import end_state

# docs/physics/long-tracks.md; mm and MeV. Errors are what does not depend on the momentum, and what rises with the kink.
FIT_CONSTANTS = {
    "x_window": 0.7,
    "x_window_per_kink": 1.5,
    "stereo_margin": 1.0,
    "max_shift_spread": 7.0,
    "n_sigma": 3.5,
    "sigma_ty": 3e-4,
    "sigma_ty_per_kink": 7.5e-3,
    "sigma_curvature": 1.5e-7,
    "sigma_curvature_per_kink": 1e-6,
    "sigma_hit": 0.1,
    "hit_scatter_per_kink": 0.67,
    "max_hit_chi2": 16.0,
    "min_hits": 9,
    "max_pairs": 2000,
    "chi2_weight": 0.6,
    "missing_hit_penalty": 4.0,
    "quality_per_kink": 15.0,
}

forward_search = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        long_track_parameters,
        *(end_state[name] for name in ("x", "y", "tx", "ty")),
        scifi_zone_offset,
        scifi_x,
        scifi_z,
        ut_x,
        ut_z,
        ut_weight,
        ut_track_count,
        ut_track_velo,
        ut_track_qop,
        ut_track_hits,
    ),
    writes=(candidate_hit_count, candidate_hits, candidate_quality, *candidate_state.values()),
    constants=FIT_CONSTANTS
    | {
        "min_p": 1800.0,
        "qop_low": 0.3,
        "qop_high": 2.2,
        "qop_margin": 0.06,
        "offset_of_ut": 2.66,
        "shift_of_ut": -3.86,
        "ut_b_of_a": 7.5e-4,
        "sigma_offset": 0.7,
        "sigma_offset_per_kink": 12.0,
        "sigma_shift": 1.4,
        "sigma_shift_per_kink": 24.0,
        "sigma_ut_a": 0.15,
        "sigma_ut_a_per_kink": 5.0,
        "sigma_ut_b": 1e-4,
        "sigma_ut_b_per_kink": 4e-3,
        "sigma_ut_c": 0.35,
        "sigma_ut_c_per_kink": 7.5,
        "missing_ut_hit_penalty": 8.0,
    },
)
