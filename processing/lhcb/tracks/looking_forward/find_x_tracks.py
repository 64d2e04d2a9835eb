"""looking_forward_find_x_tracks: the best two sets of x hits that continue each VELO-UT track."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_x, scifi_z
from hltnode.processing.lhcb.tracks.long.collections import scifi_bins, scifi_cells
from hltnode.processing.lhcb.tracks.long.parameters import long_track_parameters
from hltnode.processing.lhcb.tracks.looking_forward.collections import (
    MAX_TRIPLETS,
    chi2_count,
    x_track_hit_count,
    x_track_hits,
)
from hltnode.processing.lhcb.tracks.looking_forward.constants import LOOKING_FORWARD_CONSTANTS
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

find_x_tracks = Algorithm.beside(
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
    writes=(x_track_hit_count, x_track_hits, chi2_count),
    # docs/physics/looking-forward.md; mm and MeV.
    constants=LOOKING_FORWARD_CONSTANTS
    | {
        "min_p": 1500.0,
        "x_window": 60.0,
        "x_window_per_bend": 0.35,
        "triplet_curvature": -6e-6,
        "max_triplet_chi2": 12.0,
        "n_triplets": 32,
        "min_x_hits": 4,
        "max_spread": 30.0,
        "tensor_core_form": 0,
    },
    allowed={"n_triplets": range(1, MAX_TRIPLETS + 1), "tensor_core_form": range(3)},
)
"""Half of a window: `x_window` plus `x_window_per_bend` of the bend. `triplet_curvature`: param of equation 6.1, in
1/mm for 1 c/GeV. tensor_core_form: 0 for single precision, 1 for coordinates in half precision, 2 for coordinates
relative to the windows in half precision."""
