"""velo_search_by_triplet: seeding and forwarding."""

import math

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import F32, U16, U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.velo import collections as velo

PHI_UNITS_PER_RADIAN = 32768 / math.pi

search_by_triplet = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=32,
    large_events=velo.large_events,
    reads=(
        velo.velo_geometry,
        velo.cluster_bound,
        velo.cluster_count,
        velo.hit_x,
        velo.hit_y,
        velo.hit_z,
        velo.hit_phi,
        velo.module_pair_offset,
        velo.phi_bin_offset,
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
    # At most one open track for each hit.
    scratch=(
        Scratch("open_tracks", U32, per=velo.clusters, width=2),
        Scratch("hit_bid", U32, per=velo.clusters),
        Scratch("unused_hits", U16, per=velo.clusters),
        Scratch("points", F32, per=velo.clusters, width=4),
        Scratch("open_found", U32, per=velo.clusters),
        Scratch("downstream_hit", U16, per=velo.clusters),
    ),
    constants={
        "max_seed_scatter": 0.08,
        "max_forward_scatter": 0.09,
        "max_shared_scatter": 0.02,
        "max_phi_tolerance": 0.045 * PHI_UNITS_PER_RADIAN,
        "max_seed_slope": 0.5,
        "max_displaced_slope": 0.3,
        "seed_phi_tolerance": int(0.0625 * PHI_UNITS_PER_RADIAN),
        "displaced_phi_tolerance": int(0.5 * PHI_UNITS_PER_RADIAN),
        "max_skipped_pairs": 1,
    },
)
