"""velo_follow_tracks: all track candidates are followed together, plane by plane."""

import math

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import F32, U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.velo import collections as velo

PHI_UNITS_PER_RADIAN = 32768 / math.pi

follow_tracks = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=64,
    large_events=velo.large_events,
    reads=(
        velo.cluster_bound,
        velo.cluster_count,
        velo.hit_x,
        velo.hit_y,
        velo.hit_z,
        velo.hit_phi,
        velo.hit_id,
        velo.module_pair_offset,
    ),
    updates=(event_flags,),
    writes=(
        velo.track_hits,
        velo.track_hit_count,
        velo.candidate_count,
        velo.seed_hits,
        velo.seed_count,
        velo.hit_used,
    ),
    # At most one candidate for each hit.
    scratch=(
        Scratch("candidates", U32, per=velo.clusters, width=2),
        Scratch("found", U32, per=velo.clusters),
        Scratch("hit_bid", U32, per=velo.clusters),
        Scratch("planes", F32, per=velo.clusters, width=17),  # planes_width of candidates.cuh
    ),
    constants={
        "max_seed_scatter": 0.06,
        "max_follow_scatter": 0.09,
        "max_shared_scatter": 0.02,
        "max_seed_slope": 0.5,
        "max_displaced_slope": 0.3,
        "seed_phi_tolerance": int(0.0625 * PHI_UNITS_PER_RADIAN),
        "displaced_phi_tolerance": int(0.5 * PHI_UNITS_PER_RADIAN),
        "max_skipped_pairs": 1,
        "seed_partners": 8,
        "plane_kind": 0,
    },
    # max_seed_partners and the kinds of planes of candidates.cuh
    allowed={"seed_partners": range(1, 11), "plane_kind": range(3)},
)
"""`plane_kind`: 0 module pairs, 1 the halves of the detector apart, 2 single modules."""
