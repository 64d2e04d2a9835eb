"""mu3e_find_vertices: vertices of two positrons and an electron, and the windows of time that are kept."""

from math import sqrt

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.mu3e.detector_constants import (
    ELECTRON_MASS,
    LAYER_RADII,
    MUON_MASS,
    TARGET_HALF_LENGTH,
    TARGET_RADIUS,
)
from hltnode.processing.mu3e.hits.sort_hits import TIMES, TIMES_ALLOWED
from hltnode.processing.mu3e.tracks.collections import own_track_count, track, track_count
from hltnode.processing.mu3e.tracks.fit_triplets import ERRORS, HIT_ERROR
from hltnode.processing.mu3e.vertices.collections import vertex, vertex_count, window, window_count

find_vertices = Algorithm.beside(
    __file__,
    prefix="mu3e",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(track, track_count, own_track_count),
    updates=(event_flags,),
    writes=(vertex, vertex_count, window, window_count),
    constants={
        **TIMES,
        **ERRORS,
        "angle_error": sqrt(2.0) * HIT_ERROR / (LAYER_RADII[1] - LAYER_RADII[0]),
        "electron_mass": ELECTRON_MASS,
        "muon_mass": MUON_MASS,
        "target_radius": TARGET_RADIUS,
        "target_slope": TARGET_RADIUS / TARGET_HALF_LENGTH,
        "target_error": 0.1,
        "max_radius": TARGET_RADIUS + 3.0,
        "max_z": TARGET_HALF_LENGTH + 5.0,
        "max_path": 60.0,
        "max_gap": 3.0,
        "max_distance": 3.0,
        "max_z_apart": 5.0,
        "max_chi2": 25.0,
        "energy_window": 8.0,
        "max_sum": 10.0,
        "min_hits": 4,
        "padding": 20,
    },
    allowed={**TIMES_ALLOWED, "min_hits": range(3, 6), "padding": range(1, 101)},
    shared=tuple(TIMES),
)
"""mm, MeV, ns. max_radius, max_z: of a vertex, as the target has. max_path: arc of a track from the vertex to its first
hit. max_gap: between two circles that do not cross. max_distance, max_z_apart: of the tracks at the crossing point.
energy_window: of the energy from the mass of the muon. max_sum: of the momenta. min_hits: of each track. padding: kept
before the first hit and behind the last one."""
