"""velo_kalman_filter: states of the VELO tracks at the beam line and at z = 770 mm."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.velo.collections import (
    beamline_state,
    end_state,
    hit_x,
    hit_y,
    hit_z,
    large_events,
    track_backward,
    track_count,
    track_hit_count,
    track_hits,
    velo_geometry,
)

kalman_filter = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=128,
    large_events=large_events,
    reads=(velo_geometry, track_count, track_hit_count, track_hits, hit_x, hit_y, hit_z),
    writes=(track_backward, *beamline_state.values(), *end_state.values()),
)
