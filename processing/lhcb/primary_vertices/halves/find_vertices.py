"""velo_halves_find_vertices: primary vertices of the tracks of each half of the VELO."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import F32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.primary_vertices.halves.collections import (
    half_fit_weight,
    half_side,
    half_track_counts,
    half_track_lines,
    half_tracks,
    half_vertex,
    half_vertex_count,
    half_vertices,
    half_weight,
)
from hltnode.processing.lhcb.velo.collections import large_events, velo_geometry

# The steps of pv_beamline_peaks, pv_beamline_multi_fit and pv_beamline_cleanup. A half has fewer tracks, and those of
# an open half begin far from the beam: three constants are looser (docs/physics/velo-halves.md).
find_vertices = Algorithm.beside(
    __file__,
    prefix="velo_halves",
    grid=Grid.EVENTS,
    block_size=128,
    large_events=large_events,
    reads=(velo_geometry, half_track_counts, *half_track_lines, half_weight, half_fit_weight),
    updates=(event_flags,),
    writes=(half_vertex, half_side, half_vertex_count),
    # One half after the other uses the seeds: z, and the fitted vertex (10 floats).
    scratch=(
        Scratch("tracks", F32, per=half_tracks, width=8),
        Scratch("seed_z", F32, per=half_vertices),
        Scratch("fitted", F32, per=half_vertices, width=10),
    ),
    constants={
        "max_track_chi2": 10.0,
        "max_z_error": 3.0,  # mm
        "max_z_error_smog2": 10.0,  # mm
        "min_integral": 1.75,  # tracks
        "min_integral_smog2": 1.75,  # tracks
        "min_dip": 2.5,  # tracks per mm
        "max_chi2": 12.0,
        "chi2_cut": 4.0,
        "max_dz_converged": 0.0005,  # mm
        "max_rho2": 0.3,  # mm²
        "max_iterations": 7,
        "min_tracks": 3,
        "min_tracks_smog2": 3,
        "min_separation_chi2": 25.0,
    },
)
