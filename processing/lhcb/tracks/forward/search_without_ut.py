"""forward_search_without_ut: the SciFi hits that best continue each VELO track without a VELO-UT track."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_x, scifi_z
from hltnode.processing.lhcb.tracks.forward.constants import FORWARD_CONSTANTS
from hltnode.processing.lhcb.tracks.long.collections import candidate_columns, scifi_bins, scifi_cells, scifi_owner
from hltnode.processing.lhcb.tracks.long.parameters import long_track_parameters
from hltnode.processing.lhcb.velo.collections import end_state, track_backward, track_count

search_without_ut = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        long_track_parameters,
        *(end_state[name] for name in ("x", "y", "tx", "ty")),
        track_count,
        track_backward,
        scifi_count,
        scifi_bins,
        scifi_cells,
        scifi_x,
        scifi_z,
    ),
    updates=(event_flags, *candidate_columns, scifi_owner),
    # docs/physics/long-tracks.md; mm and MeV.
    constants=FORWARD_CONSTANTS
    | {
        "n_sigma": 2.5,
        "min_p": 5000.0,
        "max_tx": 0.35,
        "max_ty": 0.30,
        "sigma_offset": 1.0,
        "sigma_offset_per_kink": 27.0,
        "sigma_shift": 1.7,
        "sigma_shift_per_kink": 41.0,
        "max_used_hits": 2,
        "max_quality": 14.0,
        "good_quality": 6.0,
    },
)
