// Seeding: triplets of unused hits in three neighbouring module pairs, at most one for every middle hit.
//
// The first two hits must be near in phi: of the hits downstream the max_partners nearest are tried. Of all lines
// through a middle hit the one with the closest third hit wins.
#pragma once

#include "lhcb/velo/triplet_search.cuh"

namespace hlt {

/// Copy the n unused hits of the pair downstream to where they stand one behind the other, and before the first and
/// behind the last half a window of those from the other end: phi wraps.
__device__ void gather_downstream(triplet_search& search, const uint16_t* unused, uint32_t n)
{
    for (uint32_t i = threadIdx.x; n > 0u && i < n + max_partners; i += blockDim.x) {
        uint32_t at = i + n - min_of(n, max_partners / 2u);
        while (at >= n) at -= n;
        const uint32_t hit = unused[at];
        search.downstream.x[i] = search.hits.x[hit];
        search.downstream.y[i] = search.hits.y[hit];
        search.downstream.z[i] = search.hits.z[hit];
        search.downstream.phi[i] = search.hits.phi[hit];
        search.downstream.hit[i] = static_cast<uint16_t>(hit);
    }
}

/// Which of the max_partners hits downstream from `first` on, of which n are different, may be on a track with the
/// middle hit; bit k stands for first + k.
__device__ uint32_t choose_partners(const triplet_search& search, uint32_t middle, uint32_t first, uint32_t n)
{
    const float middle_x = search.hits.x[middle], middle_y = search.hits.y[middle], middle_z = search.hits.z[middle];
    const int32_t middle_phi = search.hits.phi[middle];
    const triplet_cuts& cuts = search.cuts;
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    uint32_t chosen = 0;
    for (uint32_t k = 0; k < min_of(n, max_partners); ++k) {
        const int32_t turn = static_cast<int16_t>(search.downstream.phi[first + k] - middle_phi);
        const int32_t distance = turn < 0 ? -turn : turn;
        const float dx = search.downstream.x[first + k] - middle_x;
        const float dy = search.downstream.y[first + k] - middle_y;
        const float dz = search.downstream.z[first + k] - middle_z;
        const float max2 = distance > cuts.phi_tolerance ? cuts.max_displaced_slope2 : cuts.max_slope2;
        if (distance <= cuts.displaced_phi_tolerance && dx * dx + dy * dy <= max2 * (dz * dz)) chosen |= 1u << k;
    }
    return chosen;
#else
    float8 x, y, z;
    uint8x32 phi;
    load8(x, search.downstream.x + first);
    load8(y, search.downstream.y + first);
    load8(z, search.downstream.z + first);
    load8(phi, search.downstream.phi + first);
    const uint8x32 shifted = (phi - static_cast<uint32_t>(middle_phi)) << 16;
    int8x32 turn;
    load8(turn, &shifted);
    turn >>= 16;
    const int8x32 distance = turn < 0 ? -turn : turn;
    const float8 dx = x - middle_x, dy = y - middle_y, dz = z - middle_z;
    const float8 d2 = dx * dx + dy * dy, dz2 = dz * dz;
    const int8x32 displaced = distance > cuts.phi_tolerance;
    const int8x32 flat =
        (displaced & (d2 <= cuts.max_displaced_slope2 * dz2)) | (~displaced & (d2 <= cuts.max_slope2 * dz2));
    const uint32_t chosen = bits_of((distance <= cuts.displaced_phi_tolerance) & flat);
    return n < max_partners ? chosen & ((1u << n) - 1u) : chosen;
#endif
}

/// First of the n hits downstream whose phi is not below `phi`, searched from `nearest` on.
__device__ uint32_t find_nearest(const triplet_search& search, uint32_t nearest, uint32_t n, int32_t phi)
{
    const int32_t* downstream_phi = search.downstream.phi + max_partners / 2u;
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    for (uint32_t end = n; nearest < end;) {
        const uint32_t middle = (nearest + end) / 2u;
        if (downstream_phi[middle] < phi)
            nearest = middle + 1u;
        else
            end = middle;
    }
    return nearest;
#else
    for (;;) {
        int8x32 eight;
        load8(eight, downstream_phi + nearest);
        const uint32_t left = n - nearest;
        const uint32_t not_below = bits_of(eight >= phi) | (left < 8u ? 0x100u >> (8u - left) : 0x100u);
        const uint32_t passed = static_cast<uint32_t>(__ffs(static_cast<int>(not_below))) - 1u;
        nearest += passed;
        if (passed < 8u) return nearest;
    }
#endif
}

/// List the lines of a tile of middle hits. Returns how many.
__device__ uint32_t list_lines(triplet_search& search, triplet_scratch& scratch, const uint16_t* middle,
                               uint32_t n_tile, uint32_t n_downstream, uint32_t& nearest)
{
    constexpr uint32_t half = max_partners / 2u;
    const bool few = n_downstream <= max_partners;  // then all are tried
    uint32_t n_lines = 0;
    for (uint32_t base = 0; base < n_tile; base += blockDim.x) {
        const uint32_t m = base + threadIdx.x;
        uint32_t hit = 0, first = 0, chosen = 0;
        if (m < n_tile && n_downstream > 0u) {
            hit = middle[m];
            if (!few) nearest = find_nearest(search, nearest, n_downstream, search.hits.phi[hit]);
            first = few ? min_of(half, n_downstream) : nearest;
            chosen = choose_partners(search, hit, first, n_downstream);
        }
        uint32_t total;
        const uint32_t n = static_cast<uint32_t>(__popc(chosen));
        const uint32_t line = n_lines + block_exclusive_sum(n, scratch.sum, total);
        if (m < n_tile) scratch.first_line[m] = static_cast<uint16_t>(line);
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
        for (uint32_t k = 0; k < n; ++k, chosen &= chosen - 1u) {
            scratch.lines.a[line + k] = static_cast<uint16_t>(first + static_cast<uint32_t>(__ffs(chosen)) - 1u);
            scratch.lines.b[line + k] = static_cast<uint16_t>(hit);
        }
#else
        for (uint32_t k = 0; k < max_partners; ++k) {  // those behind the n are overwritten by the next
            scratch.lines.a[line + k] = static_cast<uint16_t>(first + eight_places.places[chosen][k]);
            scratch.lines.b[line + k] = static_cast<uint16_t>(hit);
        }
#endif
        n_lines += total;
    }
    if (threadIdx.x == 0) scratch.first_line[n_tile] = static_cast<uint16_t>(n_lines);
    __syncthreads();
    return n_lines;
}

/// Of the lines of each middle hit of a tile the one with the closest third hit becomes a seed.
__device__ void make_seeds(triplet_search& search, triplet_scratch& scratch, uint32_t n_tile)
{
    const line_tile& lines = scratch.lines;
    for (uint32_t base = 0; base < n_tile; base += blockDim.x) {
        const uint32_t m = base + threadIdx.x;
        closest_hit best{no_hit, no_rank};
        uint32_t best_line = 0;
        if (m < n_tile) {
            for (uint32_t i = scratch.first_line[m]; i < scratch.first_line[m + 1u]; ++i) {
                const closest_hit found = scratch.found[i];
                const bool closer = found.scatter_bits() < best.scatter_bits();
                best = closer ? found : best;
                best_line = closer ? i : best_line;
            }
        }
        const bool found = best.hit != no_hit;
        uint32_t n_found;
        const uint32_t at = block_exclusive_count(found, scratch.sum, n_found);
        if (found) {
            uint16_t* seed = search.seed_hits + 4u * (search.n_seeds + at);
            seed[0] = search.downstream.hit[lines.a[best_line]];
            seed[1] = lines.b[best_line];
            seed[2] = static_cast<uint16_t>(best.hit);
            seed[3] = seed_left;
            search.open_hits[search.n_open + at] = lines.b[best_line] | best.hit << 16;
            search.open_state[search.n_open + at] = search.n_seeds + at;
        }
        search.n_seeds += n_found;
        search.n_open += n_found;
    }
}

/// Make triplets of unused hits with the middle one in `pair`. A line is one thread's from its begin until its third
/// hit is found, so these steps need no barriers.
__device__ void seed_tracks(triplet_search& search, triplet_scratch& scratch, uint32_t pair, uint32_t n_downstream,
                            uint32_t n_middle)
{
    line_tile& lines = scratch.lines;
    const velo_hits& hits = search.hits;
    const uint16_t* middle = search.unused + hits.module_pair_offset[pair];
    const float dz = search.module_z[2u * pair - 2u] - search.module_z[2u * pair];
    uint32_t nearest = 0;  // first hit downstream whose phi is not below that of the middle hit; only rises
    for (uint32_t base = 0; base < n_middle; base += middle_tile) {
        const uint32_t n_tile = min_of(n_middle - base, middle_tile);
        const uint32_t n_lines = list_lines(search, scratch, middle + base, n_tile, n_downstream, nearest);
        for (uint32_t i = threadIdx.x; i < n_lines; i += blockDim.x) {
            const uint32_t a = lines.a[i], b = lines.b[i];
            lines.dz[i] = dz;
            lines.x[i] = hits.x[b];
            lines.y[i] = hits.y[b];
            lines.z[i] = hits.z[b];
            lines.tx[i] = search.downstream.x[a];
            lines.ty[i] = search.downstream.y[a];
            lines.tz[i] = search.downstream.z[a];
        }
        follow_lines(lines, n_lines, pair - 1u, search.cuts.max_seed_scatter, search.cuts.max_phi_tolerance);
        for (uint32_t i = threadIdx.x; i < n_lines; i += blockDim.x)
            scratch.found[i] =
                find_closest_hit<true>(lines, i, hits, pair - 1u, search.used, search.cuts.max_seed_scatter);
        __syncthreads();
        make_seeds(search, scratch, n_tile);
    }
    __syncthreads();
}

}  // namespace hlt
