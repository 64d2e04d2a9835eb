"""forward_search_with_ut: the SciFi hits that continue each VELO-UT track best."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_x, scifi_z
from hltnode.processing.lhcb.tracks.forward.constants import FORWARD_CONSTANTS
from hltnode.processing.lhcb.tracks.long.collections import candidate_columns, scifi_bins, scifi_cells, scifi_owner
from hltnode.processing.lhcb.tracks.long.parameters import long_track_parameters
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

search_with_ut = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        long_track_parameters,
        *(end_state[name] for name in ("x", "y", "tx", "ty")),
        scifi_count,
        scifi_bins,
        scifi_cells,
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
    updates=(event_flags, *candidate_columns, scifi_owner),
    # docs/physics/long-tracks.md; mm and MeV.
    constants=FORWARD_CONSTANTS
    | {
        "n_sigma": 3.5,
        "min_p": 1800.0,
        "qop_low": 0.43,
        "qop_high": 1.75,
        "qop_margin": 0.045,
        "offset_of_ut": 2.66,
        "shift_of_ut": -3.86,
        "ut_b_of_a": 7.5e-4,
        "sigma_offset": 0.6,
        "sigma_offset_per_kink": 10.0,
        "sigma_shift": 1.2,
        "sigma_shift_per_kink": 20.0,
        "sigma_ut_a": 0.15,
        "sigma_ut_a_per_kink": 5.0,
        "sigma_ut_b": 1e-4,
        "sigma_ut_b_per_kink": 4e-3,
        "sigma_ut_c": 0.35,
        "sigma_ut_c_per_kink": 7.5,
        "missing_ut_hit_penalty": 8.0,
        "max_quality": 70.0,
        "good_quality": 40.0,
    },
)
