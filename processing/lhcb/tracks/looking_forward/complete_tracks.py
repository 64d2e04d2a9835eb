"""looking_forward_complete_tracks: the long track that continues each VELO-UT track best."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_x, scifi_z
from hltnode.processing.lhcb.tracks.long.collections import candidate_columns, scifi_bins, scifi_cells, scifi_owner
from hltnode.processing.lhcb.tracks.long.parameters import long_track_parameters
from hltnode.processing.lhcb.tracks.looking_forward.collections import x_track_hit_count, x_track_hits
from hltnode.processing.lhcb.tracks.looking_forward.constants import LOOKING_FORWARD_CONSTANTS, of_forward_search
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

complete_tracks = Algorithm.beside(
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
        x_track_hit_count,
        x_track_hits,
    ),
    updates=(event_flags, *candidate_columns, scifi_owner),
    # docs/physics/looking-forward.md; mm and MeV.
    constants=LOOKING_FORWARD_CONSTANTS
    | of_forward_search(
        "sigma_offset",
        "sigma_offset_per_kink",
        "sigma_ty",
        "sigma_ty_per_kink",
        "sigma_curvature",
        "sigma_curvature_per_kink",
        "sigma_hit",
        "hit_scatter_per_kink",
        "max_hit_chi2",
        "min_hits",
        "chi2_weight",
        "missing_hit_penalty",
        "quality_per_kink",
        "ut_b_of_a",
        "sigma_ut_a",
        "sigma_ut_a_per_kink",
        "sigma_ut_b",
        "sigma_ut_b_per_kink",
        "sigma_ut_c",
        "sigma_ut_c_per_kink",
        "missing_ut_hit_penalty",
        "max_quality",
    ),
)
"""The errors and the quality are those of the forward search with UT."""
