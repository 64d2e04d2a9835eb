"""kalman_velo_fit: the states of long tracks at the beam line, from their VELO hits and their momentum."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.tracks.kalman.collections import long_beam_state, long_chi2, long_fitted_qop, velo_field
from hltnode.processing.lhcb.tracks.kalman.velo_constants import VELO_FILTER
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_velo_track
from hltnode.processing.lhcb.velo.collections import hit_x, hit_y, hit_z, track_hit_count, track_hits, velo_geometry

velo_fit = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        velo_geometry,
        velo_field,
        long_count,
        long_velo_track,
        long_fitted_qop,
        track_hit_count,
        track_hits,
        hit_x,
        hit_y,
        hit_z,
    ),
    writes=(*long_beam_state.values(), long_chi2),
    constants={
        **VELO_FILTER,
        "beam_line_scattering": 2.91,
        "beam_line_position": 0.808**2,
        "beam_line_both": 0.793,
    },
)
"""The constants of VELO_FILTER, and of the path from the first module to the beam line."""
