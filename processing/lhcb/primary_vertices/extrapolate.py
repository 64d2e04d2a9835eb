"""pv_beamline_extrapolate: the tracks that may make primary vertices, packed (kernels/pv/extrapolate.cuh)."""

import numpy as np

from hltnode.processing.framework.batch import BatchLimits
from hltnode.processing.framework.declaration import Algorithm, Buffer, Grid, batch_header
from hltnode.processing.lhcb.velo.collections import velo_cluster_offset, velo_track_count
from hltnode.processing.lhcb.velo.kalman_filter import (
    velo_beamline_c00,
    velo_beamline_tx,
    velo_beamline_ty,
    velo_beamline_x,
    velo_beamline_y,
    velo_beamline_z,
)

PV_LANES = 32
"""Sums over tracks run in this many lanes; the tracks of an event are padded to full lanes."""


def pv_tracks(limits: BatchLimits) -> int:
    """Places for the tracks of all events. Those of event e start at
    (velo_cluster_offset[e] // 2 // PV_LANES + e) * PV_LANES.
    """
    return limits.velo_tracks + PV_LANES * (limits.events + 1)


def _per_track(name: str) -> Buffer:
    return Buffer(name=name, dtype=np.dtype("<f4"), count=pv_tracks)


pv_track_count = Buffer(name="pv_track_count", dtype=np.dtype("<u4"), count=lambda limits: limits.events)
pv_track_x = _per_track("pv_track_x")
pv_track_y = _per_track("pv_track_y")
pv_track_z = _per_track("pv_track_z")
"""mm, at the closest approach to the beam line."""
pv_track_tx = _per_track("pv_track_tx")
pv_track_ty = _per_track("pv_track_ty")
pv_track_weight = _per_track("pv_track_weight")
"""1 / var(x) = 1 / var(y), in 1/mm²."""

pv_beamline_extrapolate = Algorithm(
    name="pv_beamline_extrapolate",
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
    ),
    outputs=(pv_track_count, pv_track_x, pv_track_y, pv_track_z, pv_track_tx, pv_track_ty, pv_track_weight),
)
