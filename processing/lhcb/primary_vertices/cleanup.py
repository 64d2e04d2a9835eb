"""pv_beamline_cleanup: primary vertices, except those that are part of a larger one."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.primary_vertices.collections import fitted, pv_count, seed_count, vertices

# docs/physics/primary-vertices.md, step 7.
cleanup = Algorithm.beside(
    __file__,
    prefix="pv_beamline",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(seed_count, fitted),
    updates=(event_flags,),
    writes=(vertices, pv_count),
    constants={"min_separation_chi2": 25.0},
)
