"""mu3e_fit_triplets: the fit of triplets with multiple scattering at the middle hit."""

from math import log, sqrt

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.mu3e.detector_constants import LAYER_THICKNESS, MEV_PER_MM, PIXEL_MM
from hltnode.processing.mu3e.hits.collections import group_begin, hit, hit_x, hit_y, hit_z
from hltnode.processing.mu3e.tracks.collections import (
    fitted,
    own_track_count,
    own_triplet_count,
    track_count,
    triplet,
    triplet_count,
)

SCATTERING = 13.6 / MEV_PER_MM * sqrt(LAYER_THICKNESS) * (1.0 + 0.038 * log(LAYER_THICKNESS))
"""mm: over the radius in space, the width of the scattering angle in a layer at normal incidence (G. R. Lynch, O. I.
Dahl, Nucl. Instrum. Meth. B 58 (1991) 6, as in the review of the Particle Data Group)."""
HIT_ERROR = PIXEL_MM / sqrt(12.0)
"""mm."""
ERRORS = {"scattering": SCATTERING, "hit_error": HIT_ERROR, "mev_per_mm": MEV_PER_MM}
LIMITS = {"max_chi2": 12.0, "min_momentum": 10.0, "max_momentum": 70.0}
"""MeV/c. With less than 10 MeV/c of transverse momentum, a particle from the edge of the target does not reach layer 3;
a positron of a muon at rest has 53 MeV/c at most."""

fit_triplets = Algorithm.beside(
    __file__,
    prefix="mu3e",
    grid=Grid.EVENTS,
    block_size=128,
    reads=(hit, hit_x, hit_y, hit_z, group_begin, triplet, triplet_count, own_triplet_count),
    updates=(event_flags,),
    writes=(fitted, track_count, own_track_count),
    constants={**ERRORS, **LIMITS},
)
