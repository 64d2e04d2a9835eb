"""mu3e_find_triplets: selection and fit of triplets in one kernel."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.mu3e.hits.collections import group_begin, hit, hit_x, hit_y, hit_z
from hltnode.processing.mu3e.hits.sort_hits import TIMES, TIMES_ALLOWED
from hltnode.processing.mu3e.tracks.collections import (
    fitted,
    own_track_count,
    own_triplet_count,
    track_count,
    triplet_count,
)
from hltnode.processing.mu3e.tracks.fit_triplets import ERRORS, LIMITS
from hltnode.processing.mu3e.tracks.select_triplets import CUTS

find_triplets = Algorithm.beside(
    __file__,
    prefix="mu3e",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(hit, hit_x, hit_y, hit_z, group_begin),
    updates=(event_flags,),
    writes=(triplet_count, own_triplet_count, fitted, track_count, own_track_count),
    constants={**TIMES, **CUTS, **ERRORS, **LIMITS},
    allowed=TIMES_ALLOWED,
    shared=tuple(TIMES),
)
