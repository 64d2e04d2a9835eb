"""velo_impact_parameter: distance of each VELO track from its primary vertex (kernels/velo/impact_parameter.cuh)."""

import numpy as np

from hltnode.processing.framework.declaration import Algorithm, Buffer, Grid, batch_header
from hltnode.processing.lhcb.primary_vertices.cleanup import pv_count, pvs
from hltnode.processing.lhcb.velo.collections import velo_cluster_offset, velo_track_count
from hltnode.processing.lhcb.velo.kalman_filter import (
    velo_beamline_c00,
    velo_beamline_c20,
    velo_beamline_c22,
    velo_beamline_tx,
    velo_beamline_ty,
    velo_beamline_x,
    velo_beamline_y,
    velo_beamline_z,
)

NO_PV = 255

velo_track_ip = Buffer(name="velo_track_ip", dtype=np.dtype("<f4"), count=lambda limits: limits.velo_tracks)
"""mm, the smallest to any primary vertex; 0 without one."""
velo_track_ip_chi2 = Buffer(name="velo_track_ip_chi2", dtype=np.dtype("<f4"), count=lambda limits: limits.velo_tracks)
"""To the same vertex; 0 without one."""
velo_track_pv = Buffer(name="velo_track_pv", dtype=np.dtype("u1"), count=lambda limits: limits.velo_tracks)
"""Index of that vertex in the event, or NO_PV."""

velo_impact_parameter = Algorithm(
    name="velo_impact_parameter",
    grid=Grid.EVENTS,
    block_size=128,
    inputs=(
        batch_header,
        velo_cluster_offset,
        velo_track_count,
        velo_beamline_x,
        velo_beamline_y,
        velo_beamline_z,
        velo_beamline_tx,
        velo_beamline_ty,
        velo_beamline_c00,
        velo_beamline_c20,
        velo_beamline_c22,
        pvs,
        pv_count,
    ),
    outputs=(velo_track_ip, velo_track_ip_chi2, velo_track_pv),
)
