"""velo_kalman_filter: states of the VELO tracks at the beam line and at z = 770 mm (kernels/velo/kalman.cuh).

All buffers have one element per track; the tracks of event e start at velo_cluster_offset[e] // 2. x and y have equal
covariances, so those of x stand for both: c00 = var(x) in mm², c20 = cov(x, tx) in mm, c22 = var(tx).
"""

import numpy as np

from hltnode.processing.framework.declaration import Algorithm, Buffer, Grid, batch_header
from hltnode.processing.lhcb.velo.collections import (
    velo_cluster_offset,
    velo_geometry,
    velo_hit_x,
    velo_hit_y,
    velo_hit_z,
    velo_track_count,
    velo_track_hit_count,
    velo_track_hits,
)


def _per_track(name: str) -> Buffer:
    return Buffer(name=name, dtype=np.dtype("<f4"), count=lambda limits: limits.velo_tracks)


velo_track_backward = Buffer(name="velo_track_backward", dtype=np.dtype("u1"), count=lambda limits: limits.velo_tracks)
"""1 where the track flies towards negative z."""

velo_beamline_x = _per_track("velo_beamline_x")
velo_beamline_y = _per_track("velo_beamline_y")
velo_beamline_z = _per_track("velo_beamline_z")
velo_beamline_tx = _per_track("velo_beamline_tx")
velo_beamline_ty = _per_track("velo_beamline_ty")
velo_beamline_c00 = _per_track("velo_beamline_c00")
velo_beamline_c20 = _per_track("velo_beamline_c20")
velo_beamline_c22 = _per_track("velo_beamline_c22")
"""The state closest to the beam line; mm and slopes."""

velo_end_x = _per_track("velo_end_x")
velo_end_y = _per_track("velo_end_y")
velo_end_tx = _per_track("velo_end_tx")
velo_end_ty = _per_track("velo_end_ty")
velo_end_c00 = _per_track("velo_end_c00")
velo_end_c20 = _per_track("velo_end_c20")
velo_end_c22 = _per_track("velo_end_c22")
"""The state at z = 770 mm."""

velo_kalman_filter = Algorithm(
    name="velo_kalman_filter",
    grid=Grid.EVENTS,
    block_size=128,
    inputs=(
        batch_header,
        velo_geometry,
        velo_cluster_offset,
        velo_track_count,
        velo_track_hit_count,
        velo_track_hits,
        velo_hit_x,
        velo_hit_y,
        velo_hit_z,
    ),
    outputs=(
        velo_track_backward,
        velo_beamline_x,
        velo_beamline_y,
        velo_beamline_z,
        velo_beamline_tx,
        velo_beamline_ty,
        velo_beamline_c00,
        velo_beamline_c20,
        velo_beamline_c22,
        velo_end_x,
        velo_end_y,
        velo_end_tx,
        velo_end_ty,
        velo_end_c00,
        velo_end_c20,
        velo_end_c22,
    ),
)
