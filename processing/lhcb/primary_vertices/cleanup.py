"""pv_beamline_cleanup: primary vertices without those that are part of a larger one (kernels/pv/cleanup.cuh)."""

import numpy as np

from hltnode.processing.framework.declaration import Algorithm, Buffer, Constant, Grid, Role, batch_header, event_flags
from hltnode.processing.lhcb.primary_vertices.multi_fit import PRIMARY_VERTEX, pv_fitted
from hltnode.processing.lhcb.primary_vertices.peaks import pv_seed_count
from hltnode.processing.lhcb.velo.collections import MAX_PVS

pvs = Buffer(name="pvs", dtype=PRIMARY_VERTEX, count=lambda limits: limits.events * MAX_PVS)
"""[event][32], in order of z of their seeds."""
pv_count = Buffer(name="pv_count", dtype=np.dtype("<u4"), count=lambda limits: limits.events, role=Role.OUTPUT)

# reconstruction-facts.md 2, step 7.
pv_beamline_cleanup = Algorithm(
    name="pv_beamline_cleanup",
    grid=Grid.EVENTS,
    block_size=64,
    inputs=(batch_header, pv_seed_count, pv_fitted),
    updates=(event_flags,),
    outputs=(pvs, pv_count),
    constants=(Constant("min_separation_chi2", 25.0),),
)
