"""secondary_vertices_fit_vertices: vertices of two tracks, and all their fields for lines."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.primary_vertices.collections import pv_count, vertices
from hltnode.processing.lhcb.secondary_vertices.collections import (
    vertex_count,
    vertex_covariance,
    vertex_fit,
    vertex_flight,
    vertex_kind,
    vertex_masses,
    vertex_momentum,
    vertex_of_tracks,
    vertex_pair_count,
    vertex_pair_kind,
    vertex_pair_tracks,
    vertex_position,
    vertex_pv,
    vertex_tracks_of,
)
from hltnode.processing.lhcb.tracks.kalman.collections import long_beam_state, long_ip, long_ip_chi2, velo_field

fit_vertices = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        velo_field,
        vertex_pair_count,
        vertex_pair_tracks,
        vertex_pair_kind,
        *long_beam_state.values(),
        long_ip,
        long_ip_chi2,
        vertices,
        pv_count,
    ),
    updates=(event_flags,),
    writes=(
        vertex_count,
        vertex_tracks_of,
        vertex_kind,
        vertex_pv,
        *vertex_position.values(),
        *vertex_covariance.values(),
        *vertex_fit.values(),
        *vertex_momentum.values(),
        *vertex_flight.values(),
        *vertex_masses.values(),
        *vertex_of_tracks.values(),
    ),
    constants={
        "max_chi2": 30.0,
        "min_z": -600.0,
        "max_z": 800.0,
        "ks_min_mass": 400.0,
        "ks_max_mass": 600.0,
        "lambda_max_mass": 1140.0,
    },
)
"""mm and MeV."""
