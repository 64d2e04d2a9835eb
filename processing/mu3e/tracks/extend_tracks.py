"""mu3e_extend_tracks: tracks of fitted triplets, with hits in layer 3 and recurling hits."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.mu3e.hits.collections import group_begin, hit, hit_x, hit_y, hit_z
from hltnode.processing.mu3e.hits.sort_hits import TIMES, TIMES_ALLOWED
from hltnode.processing.mu3e.tracks.collections import fitted, track, track_count
from hltnode.processing.mu3e.tracks.fit_triplets import ERRORS

extend_tracks = Algorithm.beside(
    __file__,
    prefix="mu3e",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(hit, hit_x, hit_y, hit_z, group_begin, fitted, track_count),
    writes=(track,),
    constants={
        **TIMES,
        **ERRORS,
        "max_xy23": 40.0,
        "max_z23": 60.0,
        "max_chi2_long": 40.0,
        "max_recurl_xy": 20.0,
        "max_recurl_z": 25.0,
        "max_chi2_recurl": 12.0,
        "energy_loss": 0.08,
    },
    allowed=TIMES_ALLOWED,
    shared=tuple(TIMES),
)
"""mm. max_xy23, max_z23: between the hits in layers 2 and 3. max_recurl_xy, max_recurl_z: of a recurling hit from the
helix. max_chi2_long: of a track with a hit in layer 3; max_chi2_recurl: added by a recurling hit. energy_loss: MeV in a
layer, added to the momentum for each layer before the arc that decides on it."""
