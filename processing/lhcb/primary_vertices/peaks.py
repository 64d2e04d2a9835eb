"""pv_beamline_peaks: seeds of primary vertices from a histogram of the tracks' z (kernels/pv/peaks.cuh)."""

import numpy as np

from hltnode.processing.framework.declaration import Algorithm, Buffer, Constant, Grid, batch_header, event_flags
from hltnode.processing.lhcb.primary_vertices.extrapolate import (
    pv_track_count,
    pv_track_tx,
    pv_track_ty,
    pv_track_weight,
    pv_track_x,
    pv_track_y,
    pv_track_z,
)
from hltnode.processing.lhcb.velo.collections import velo_cluster_offset, velo_geometry

MAX_PV_SEEDS = 64
"""Per event; twice the vertices that are kept, since neighbouring peaks may merge."""

pv_seed_z = Buffer(name="pv_seed_z", dtype=np.dtype("<f4"), count=lambda limits: limits.events * MAX_PV_SEEDS)
"""[event][64], mm, ascending."""
pv_seed_count = Buffer(name="pv_seed_count", dtype=np.dtype("<u4"), count=lambda limits: limits.events)

# reconstruction-facts.md 2, steps 1-3; "smog2" values hold in the gas cell, at z < -341 mm. Of min_dip Allen has used 3
# and 2; 2.5 separates one more collision of the seven real events than 3, and makes no more false ones in simulation.
pv_beamline_peaks = Algorithm(
    name="pv_beamline_peaks",
    grid=Grid.EVENTS,
    block_size=128,
    inputs=(
        batch_header,
        velo_geometry,
        velo_cluster_offset,
        pv_track_count,
        pv_track_x,
        pv_track_y,
        pv_track_z,
        pv_track_tx,
        pv_track_ty,
        pv_track_weight,
    ),
    updates=(event_flags,),
    outputs=(pv_seed_z, pv_seed_count),
    constants=(
        Constant("max_track_chi2", 10.0),
        Constant("max_z_error", 1.5),
        Constant("max_z_error_smog2", 10.0),
        Constant("min_integral", 2.5),
        Constant("min_integral_smog2", 1.75),
        Constant("min_dip", 2.5),
    ),
)
