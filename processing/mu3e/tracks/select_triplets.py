"""mu3e_select_triplets: the triplets of hits in the inner three layers that are near each other."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.mu3e.hits.collections import group_begin, hit, hit_x, hit_y, hit_z
from hltnode.processing.mu3e.hits.sort_hits import TIMES, TIMES_ALLOWED
from hltnode.processing.mu3e.tracks.collections import own_triplet_count, triplet, triplet_count

CUTS = {"max_xy01": 18.0, "max_z01": 30.0, "max_xy12": 76.0, "max_z12": 150.0, "max_z_residual": 12.0}
"""mm. Greatest distances of hits in the transverse plane and along z, between layers 0 and 1, and between 1 and 2; and
of the hit in layer 2 from the line in z against the path."""

select_triplets = Algorithm.beside(
    __file__,
    prefix="mu3e",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(hit, hit_x, hit_y, hit_z, group_begin),
    updates=(event_flags,),
    writes=(triplet, triplet_count, own_triplet_count),
    constants={**TIMES, **CUTS},
    allowed=TIMES_ALLOWED,
    shared=tuple(TIMES),
)
