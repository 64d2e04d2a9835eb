"""pv_beamline_multi_fit: adaptive fit of all seeds of an event at once (kernels/pv/multi_fit.cuh)."""

import numpy as np

from hltnode.processing.framework.declaration import Algorithm, Buffer, Constant, Grid, batch_header
from hltnode.processing.lhcb.primary_vertices.extrapolate import (
    pv_track_count,
    pv_track_tx,
    pv_track_ty,
    pv_track_weight,
    pv_track_x,
    pv_track_y,
    pv_track_z,
    pv_tracks,
)
from hltnode.processing.lhcb.primary_vertices.peaks import MAX_PV_SEEDS, pv_seed_count, pv_seed_z
from hltnode.processing.lhcb.velo.collections import velo_cluster_offset, velo_geometry

PRIMARY_VERTEX = np.dtype(
    [(name, "<f4") for name in ("x", "y", "z", "c00", "c10", "c11", "c20", "c21", "c22", "n_tracks")]
)
"""Position in mm, covariance in mm² (0 = x, 1 = y, 2 = z), sum of the weights of the tracks."""

pv_track_denominator = Buffer(name="pv_track_denominator", dtype=np.dtype("<f4"), count=pv_tracks)
"""Sum over the seeds of exp(-chi2 / 2) of the track."""
pv_fitted = Buffer(name="pv_fitted", dtype=PRIMARY_VERTEX, count=lambda limits: limits.events * MAX_PV_SEEDS)
"""[event][64], one for each seed; n_tracks is 0 where the fit was rejected."""

# reconstruction-facts.md 2, steps 5 and 6.
pv_beamline_multi_fit = Algorithm(
    name="pv_beamline_multi_fit",
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
        pv_seed_z,
        pv_seed_count,
    ),
    outputs=(pv_track_denominator, pv_fitted),
    constants=(
        Constant("max_chi2", 12.0),
        Constant("chi2_cut", 4.0),
        Constant("max_dz_converged", 0.0005),
        Constant("max_rho2", 0.3),
        Constant("max_iterations", 7),
        Constant("min_tracks", 4),
        Constant("min_tracks_smog2", 3),
    ),
)
