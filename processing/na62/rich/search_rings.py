"""rich_search_rings: all rings of an event by Ptolemy's theorem, without a seed."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.na62.rich.collections import Fit, hit_count, hit_x, hit_y, ring, ring_count
from hltnode.processing.na62.rich.fit_ring import MIN_SPREAD, RESOLUTION

search_rings = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=32,
    reads=(hit_count, hit_x, hit_y),
    updates=(event_flags, ring_count),
    writes=(ring,),
    constants={
        "triplets": 8,
        "method": int(Fit.FIT_TAUBIN),
        "max_skipped": 1,
        "min_distance": 100.0,
        "tolerance": 0.003,
        "first_window": 20.0,
        "window": 12.0,
        "refits": 3,
        "min_hits": 7,
        "min_radius": 60.0,
        "max_radius": 205.0,
        "max_mean_square": 45.0,
        "merge_distance": 12.0,
        "resolution": RESOLUTION,
        "min_spread": MIN_SPREAD,
    },
    allowed={"method": range(len(Fit)), "triplets": range(4, 9, 4)},
)
