"""velo_search_by_triplet: seeding and forwarding (kernels/velo/search_by_triplet.cuh)."""

import math

from hltnode.processing.framework.declaration import Algorithm, Constant, Grid, batch_header, event_flags
from hltnode.processing.lhcb.velo import collections as velo

PHI_UNITS_PER_RADIAN = 32768 / math.pi

velo_search_by_triplet = Algorithm(
    name="velo_search_by_triplet",
    grid=Grid.EVENTS,
    block_size=64,
    inputs=(
        batch_header,
        velo.velo_geometry,
        velo.velo_cluster_bound,
        velo.velo_cluster_offset,
        velo.velo_hit_x,
        velo.velo_hit_y,
        velo.velo_hit_z,
        velo.velo_hit_phi,
        velo.velo_cluster_count,
        velo.velo_module_pair_offset,
        velo.velo_phi_bin_offset,
    ),
    updates=(event_flags,),
    outputs=(
        velo.velo_track_hits,
        velo.velo_track_hit_count,
        velo.velo_candidate_count,
        velo.velo_seed_hits,
        velo.velo_seed_count,
        velo.velo_hit_used,
        velo.velo_open_hits,
        velo.velo_open_state,
        velo.velo_open_found,
        velo.velo_open_bid,
        velo.velo_hit_bid,
        velo.velo_unused_hits,
        velo.velo_downstream_x,
        velo.velo_downstream_y,
        velo.velo_downstream_z,
        velo.velo_downstream_phi,
        velo.velo_downstream_hit,
    ),
    constants=(
        Constant("max_seed_scatter", 0.08),
        Constant("max_forward_scatter", 0.09),
        Constant("max_shared_scatter", 0.02),
        Constant("max_phi_tolerance", 0.045 * PHI_UNITS_PER_RADIAN),
        Constant("max_seed_slope", 0.5),
        Constant("max_displaced_slope", 0.3),
        Constant("seed_phi_tolerance", int(0.0625 * PHI_UNITS_PER_RADIAN)),
        Constant("displaced_phi_tolerance", int(0.5 * PHI_UNITS_PER_RADIAN)),
        Constant("max_skipped_pairs", 1),
    ),
)
