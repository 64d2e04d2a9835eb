"""matching_seed_in_x: curves through the hits of x layers of the SciFi tracker."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import U8, U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.tracks.long.collections import (
    seeding_bins,
    seeding_cells,
    seeding_hits,
    seeding_x,
    x_seed_count,
    x_seed_curve,
    x_seed_hit_count,
    x_seed_hits,
    x_seed_score,
)
from hltnode.processing.lhcb.tracks.matching.seeding_tables import seeding_tables

seed_in_x = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(seeding_tables, seeding_bins, seeding_cells, seeding_x),
    updates=(event_flags,),
    writes=(x_seed_count, *x_seed_curve.values(), x_seed_score, x_seed_hit_count, x_seed_hits),
    scratch=(Scratch("owner", U32, per=seeding_hits), Scratch("taken", U8, per=seeding_hits)),
    constants={
        "max_x0": 3400.0,  # mm: 2.4 GeV
        "max_magnet_x": 1300.0,  # mm
        "max_zone_hits": 768,
        "max_chi2": 30.0,
        "missing_hit_penalty": 6.0,
        "max_shared_hits": 2,
    },
)
