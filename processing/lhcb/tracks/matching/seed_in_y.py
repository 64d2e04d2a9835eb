"""matching_seed_in_y: SciFi seeds from the curves of the seeding and hits of the stereo layers."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.tracks.long.collections import (
    seed_count,
    seed_hit_count,
    seed_hits,
    seed_state,
    seeding_bins,
    seeding_cells,
    seeding_hit,
    seeding_x,
    x_seed_count,
    x_seed_curve,
    x_seed_hit_count,
    x_seed_hits,
)
from hltnode.processing.lhcb.tracks.matching.seeding_tables import seeding_tables

seed_in_y = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        seeding_tables,
        seeding_x,
        seeding_bins,
        seeding_cells,
        seeding_hit,
        x_seed_count,
        *x_seed_curve.values(),
        x_seed_hit_count,
        x_seed_hits,
    ),
    updates=(event_flags,),
    writes=(seed_count, *seed_state.values(), seed_hit_count, seed_hits),
    constants={
        "max_line_chi2": 16.0,
        "missing_hit_penalty": 5.0,
        "max_chi2": 40.0,
        "min_hits": 9,
    },
)
