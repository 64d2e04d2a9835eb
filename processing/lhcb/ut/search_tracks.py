"""ut_search_tracks: the UT hits that continue each VELO track best."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.ut.collections import (
    candidate_fit,
    candidate_hit_count,
    candidate_hits,
    candidate_quality,
    ut_geometry,
    ut_sector_offset,
    ut_tables,
    ut_weight,
    ut_x,
    ut_y_begin,
    ut_y_end,
    ut_z,
)
from hltnode.processing.lhcb.velo.collections import end_state, track_backward, track_count

search_tracks = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        ut_geometry,
        ut_tables,
        ut_x,
        ut_z,
        ut_y_begin,
        ut_y_end,
        ut_weight,
        ut_sector_offset,
        track_backward,
        track_count,
        *(end_state[name] for name in ("x", "y", "tx", "ty")),
    ),
    updates=(event_flags,),
    writes=(candidate_hit_count, candidate_hits, candidate_quality, *candidate_fit.values()),
    # docs/physics/ut.md; mm and MeV. max_pairs: limit for all tracks of an event together.
    constants={
        "min_p": 1000.0,
        "min_pt": 100.0,
        "sufficient_p": 2000.0,
        "max_tx": 0.35,
        "max_ty": 0.30,
        "min_radius": 33.0,
        "max_slope_difference": 0.03,
        "max_kink_distance": 7.0,
        "max_distance": 0.8,
        "three_hits_penalty": 50.0,
        "max_search_chi2": 600.0,
        "max_chi2": 80.0,
        "max_pairs": 300_000,
    },
)
