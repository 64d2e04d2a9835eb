"""matching_match_seeds: the SciFi seed of each VELO track without a long track, confirmed by hits in the UT."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import F32, U8, U16, U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_hits
from hltnode.processing.lhcb.tracks.long.collections import (
    N_UT_LAYERS,
    long_count,
    long_velo_track,
    matched_count,
    matched_qop,
    matched_quality,
    matched_seed,
    matched_ut_hits,
    matched_velo_track,
    scifi_seeds,
    seed_count,
    seed_hit_count,
    seed_hits,
    seed_state,
)
from hltnode.processing.lhcb.tracks.matching.seeding_tables import seeding_tables
from hltnode.processing.lhcb.ut.collections import (
    ut_bin_begin,
    ut_bin_order,
    ut_bin_x,
    ut_bin_z,
    ut_count,
    ut_x,
    ut_y_begin,
    ut_y_end,
    ut_z,
)
from hltnode.processing.lhcb.velo.collections import end_state, track_backward, track_count, tracks

match_seeds = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        seeding_tables,
        track_count,
        track_backward,
        *(end_state[name] for name in ("x", "y", "tx", "ty")),
        scifi_count,
        ut_count,
        ut_x,
        ut_z,
        ut_y_begin,
        ut_y_end,
        seed_count,
        *(seed_state[name] for name in ("x", "y", "tx", "ty", "curvature")),
        seed_hit_count,
        seed_hits,
        long_count,
        long_velo_track,
    ),
    updates=(event_flags,),
    writes=(
        *(matched_count, matched_velo_track, matched_seed, matched_qop, matched_quality, matched_ut_hits),
        *(ut_bin_begin, ut_bin_order, ut_bin_x, ut_bin_z),
    ),
    scratch=(
        Scratch("busy", U8, per=tracks),
        Scratch("track", U16, per=tracks),
        *(Scratch(name, F32, per=tracks) for name in ("x", "y", "tx", "ty")),
        Scratch("best", U32, per=tracks),
        Scratch("owner", U32, per=scifi_hits),
        Scratch("confirmed_track", U16, per=scifi_seeds),
        Scratch("confirmed_hits", U16, per=scifi_seeds, width=N_UT_LAYERS),
        Scratch("confirmed_score", F32, per=scifi_seeds),
    ),
    constants={"max_chi2": 40.0, "max_score": 1.5, "max_shared_hits": 2},
)
