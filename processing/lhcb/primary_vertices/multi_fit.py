"""pv_beamline_multi_fit: adaptive fit of all seeds of an event at once."""

from hltnode.processing.framework.collections import F32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.primary_vertices.collections import (
    fitted,
    pv_fit_weight,
    pv_track_count,
    pv_track_lines,
    pv_tracks,
    seed_count,
    seed_z,
)
from hltnode.processing.lhcb.velo.collections import large_events, velo_geometry

# docs/physics/primary-vertices.md, steps 5 and 6.
multi_fit = Algorithm.beside(
    __file__,
    prefix="pv_beamline",
    grid=Grid.EVENTS,
    block_size=128,
    large_events=large_events,
    reads=(velo_geometry, pv_track_count, *pv_track_lines, pv_fit_weight, seed_z, seed_count),
    writes=(fitted,),
    # For each track the sum over the seeds of exp(-chi2 / 2); on a GPU beside the columns of the track (pv_fit_track).
    scratch=(Scratch("tracks", F32, per=pv_tracks, width=8),),
    constants={
        "max_chi2": 12.0,
        "chi2_cut": 4.0,  # where a lone track has weight 1/2
        "max_dz_converged": 0.0005,  # mm
        "max_rho2": 0.3,  # mm², to the beam line
        "max_iterations": 7,
        "min_tracks": 4,
        "min_tracks_smog2": 3,
    },
)
