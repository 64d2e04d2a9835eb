"""pv_beamline_peaks: seeds of primary vertices from a histogram of the tracks' z."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.primary_vertices.collections import (
    pv_track_count,
    pv_track_lines,
    pv_weight,
    seed_count,
    seed_z,
)
from hltnode.processing.lhcb.velo.collections import large_events, velo_geometry

# docs/physics/primary-vertices.md, steps 1-3; "smog2" values hold in the gas cell, at z < -341 mm. Allen has used 3 and
# 2 for min_dip. The value 2.5 separates one more collision of the seven real events than 3, without more false vertices
# in simulation.
peaks = Algorithm.beside(
    __file__,
    prefix="pv_beamline",
    grid=Grid.EVENTS,
    block_size=128,
    large_events=large_events,
    reads=(velo_geometry, pv_track_count, *pv_track_lines, pv_weight),
    updates=(event_flags,),
    writes=(seed_z, seed_count),
    constants={
        "max_track_chi2": 10.0,  # to the beam line
        "max_z_error": 1.5,  # mm
        "max_z_error_smog2": 10.0,  # mm
        "min_integral": 2.5,  # tracks
        "min_integral_smog2": 1.75,  # tracks
        "min_dip": 2.5,  # tracks per mm
    },
)
