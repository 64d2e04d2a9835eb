"""downstream_search_ut: the UT hits that continue each SciFi seed without a long track best."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import F32, U8
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_hits
from hltnode.processing.lhcb.tracks.downstream.collections import (
    candidate_found,
    candidate_numbers,
    candidate_ut_hits,
)
from hltnode.processing.lhcb.tracks.downstream.field import downstream_field
from hltnode.processing.lhcb.tracks.long.collections import (
    long_count,
    long_hits,
    long_ut_hits,
    seed_count,
    seed_hits,
    seed_state,
)
from hltnode.processing.lhcb.ut.collections import (
    ut_bin_begin,
    ut_bin_order,
    ut_bin_x,
    ut_bin_z,
    ut_count,
    ut_hits,
    ut_y_begin,
    ut_y_end,
)

search_ut = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        downstream_field,
        scifi_count,
        ut_count,
        ut_y_begin,
        ut_y_end,
        *(ut_bin_begin, ut_bin_order, ut_bin_x, ut_bin_z),
        long_count,
        long_hits,
        long_ut_hits,
        seed_count,
        *(seed_state[name] for name in ("x", "y", "tx", "ty", "curvature")),
        seed_hits,
    ),
    updates=(event_flags,),
    writes=(candidate_found, candidate_ut_hits, *candidate_numbers.values()),
    scratch=(
        Scratch("scifi_used", U8, per=scifi_hits),
        Scratch("ut_used", U8, per=ut_hits),
        Scratch("ut_y_begin", F32, per=ut_hits),
        Scratch("ut_y_end", F32, per=ut_hits),
        Scratch("ut_used_in_order", F32, per=ut_hits),
    ),
    # docs/physics/downstream-tracks.md; mm. max_pairs: limit for all seeds of an event together.
    constants={
        "max_used_scifi_hits": 2,
        "max_used_ut_hits": 1,
        "used_hit_penalty": 3.0,
        "max_origin_x": 100.0,
        "min_kink": 0.01,
        "max_kink": 0.6,
        "x_window": 0.25,
        "x_window_of_kink": 2.8,
        "y_window": 16.0,
        "y_window_of_kink": 32.0,
        "y_margin": 4.0,
        "stereo_window": 0.6,
        "max_chi2": 9.0,
        "max_pairs": 300_000,
    },
)
