"""matching_append_matched: merge of the matched tracks into the long tracks, in the order of VELO tracks."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.tracks.long.collections import (
    long_count,
    long_hit_count,
    long_hits,
    long_origin,
    long_qop,
    long_quality,
    long_state,
    long_ut_hits,
    long_ut_track,
    long_velo_track,
    matched_count,
    matched_qop,
    matched_quality,
    matched_seed,
    matched_ut_hits,
    matched_velo_track,
    seed_hit_count,
    seed_hits,
    seed_state,
)

append_matched = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        matched_count,
        matched_velo_track,
        matched_seed,
        matched_qop,
        matched_quality,
        matched_ut_hits,
        *(seed_state[name] for name in ("x", "y", "tx", "ty")),
        seed_hit_count,
        seed_hits,
    ),
    updates=(
        long_count,
        long_velo_track,
        long_ut_track,
        long_origin,
        long_qop,
        *long_state.values(),
        long_quality,
        long_hit_count,
        long_hits,
        long_ut_hits,
    ),
)
