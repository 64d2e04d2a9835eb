// Three-hit tracks: triplets that were not extended, if they are straight and their hits are free.
//
// Three hits are often aligned by chance. So such a track must have no hit on a longer track and a good straight-line
// fit. On at least two of its hits its fit must be the best of all triplets with that hit.
// In:  velo_seeds.hits, velo_seeds.count, velo_hits.used, velo_hits.{x, y, z}.
// Out: velo_seeds.hits [seed][3] = seed_accepted for those that pass; scratch.hit_owner.
// One block per event; threads stride over hits and over seeds.
// Bounds: velo_seeds.count <= velo_clusters.count of the event.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/velo/generated/velo_types.h"
#include "lhcb/velo/tracking/generated/velo_filter_three_hit_tracks.h"

namespace hlt {

constexpr float velo_hit_weight = 6400.f;  // 1 / (12.5 um)^2
constexpr uint32_t min_owned_hits = 2;     // of three: collimated particles share one hit
constexpr uint32_t no_owner = 0xffffffffu;

/// Sum of squared residuals (mm^2) of the least-squares line through three points at z[0..2]; a is the lever of the
/// middle point.
__device__ float squared_residuals(float v0, float v1, float v2, float a)
{
    const float deviation = v1 - (v0 + (v2 - v0) * a);
    return deviation * deviation / (1.f + a * a + (1.f - a) * (1.f - a));
}

}  // namespace hlt

HLT_KERNEL(velo_filter_three_hit_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first_hit = p.velo_hits.first(event);
    const uint32_t n_hits = p.velo_clusters.count[event];
    const uint32_t n_seeds = p.velo_seeds.count[event];
    const float* x = p.velo_hits.x + first_hit;
    const float* y = p.velo_hits.y + first_hit;
    const float* z = p.velo_hits.z + first_hit;
    const uint32_t* used = p.velo_hits.used + first_hit;
    uint16_t* seeds = p.velo_seeds.hits + 4u * first_hit;
    uint32_t* owner = p.scratch.hit_owner + first_hit;

    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) owner[i] = hlt::no_owner;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n_seeds; i += blockDim.x) {
        uint16_t* seed = seeds + 4u * i;
        const uint32_t a = seed[0], b = seed[1], c = seed[2];
        if (seed[3] != hlt::seed_left || (used[a] | used[b] | used[c]) != 0) continue;
        const float lever = (z[b] - z[a]) / (z[c] - z[a]);
        const float residuals =
            hlt::squared_residuals(x[a], x[b], x[c], lever) + hlt::squared_residuals(y[a], y[b], y[c], lever);
        const float chi2 = 0.5f * hlt::velo_hit_weight * residuals;
        if (!(chi2 < p.max_chi2)) continue;
        seed[3] = hlt::seed_accepted;
        const uint32_t rank = (__float_as_uint(chi2) & 0xffff0000u) | i;  // positive floats sort as their bits
        atomicMin(&owner[a], rank);
        atomicMin(&owner[b], rank);
        atomicMin(&owner[c], rank);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n_seeds; i += blockDim.x) {
        uint16_t* seed = seeds + 4u * i;
        if (seed[3] != hlt::seed_accepted) continue;
        uint32_t owned = 0;
        for (uint32_t k = 0; k < 3u; ++k)
            if ((owner[seed[k]] & 0xffffu) == i) ++owned;
        if (owned < hlt::min_owned_hits) seed[3] = hlt::seed_left;
    }
}
