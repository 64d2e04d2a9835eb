// Following lines on a GPU: a line stays in the registers of its thread from its two hits to the closest one.
#pragma once

#include "lhcb/velo/tracking/triplet_lines.cuh"

namespace hlt {

/// The closest hit of those in the bins of the line's window.
template <bool only_unused>
__device__ closest_hit find_closest_hit(const line_in_pair& line, const velo_hits& hits, const line_target& target)
{
    const uint32_t begin = target.bins[line.first_bin], end = target.bins[line.last_bin + 1];
    const bool wraps = line.last_bin < line.first_bin;
    const hit_point* const pair_begin = &hits.points[target.begin];
    const hit_point* const pair_end = &hits.points[target.end];
    const hit_point* point = &hits.points[begin];
    // Of numbers that are not negative the bits compare as they do. What is below a limit without rank_bits is so
    // without its own, too.
    uint32_t limit = __float_as_uint(target.max_scatter);
    float closest = __uint_as_float(no_hit << 16);
#pragma unroll 1  // the lanes of a warp would part
    for (uint32_t n = end - begin + (wraps ? target.end - target.begin : 0u); n > 0u; --n) {
        if (point == pair_end) point = pair_begin;
        const hit_point hit = *point++;
        const float dx = hit.x - (line.x + line.tx * hit.z);
        const float dy = hit.y - (line.y + line.ty * hit.z);
        const uint32_t scatter = __float_as_uint(dx * dx + dy * dy);
        if (scatter < limit && !(only_unused && hits.used[hit.hit()] != 0u)) {
            limit = scatter & ~rank_bits;
            closest = hit.phi_and_hit;
        }
    }
    return {__float_as_uint(closest) >> 16, limit};
}

/// Find the hit closest to each of n lines. `line_at(i)` gives the two hits of line i and `take(i, found)` gets what is
/// found; for i >= n, too, something that does not count: all lanes of a warp call it together.
template <bool only_unused, typename LineAt, typename Take>
__device__ void follow_lines(const velo_hits& hits, const line_target& target, const line_share& share, uint32_t n,
                             LineAt line_at, Take take)
{
    for (uint32_t first = share.first_of_warp; first < n; first += share.threads) {
        const uint32_t i = first + threadIdx.x % warp_size;
        const line_in_pair line = line_through(line_at(min_of(i, n - 1u)), target);
        take(i, find_closest_hit<only_unused>(line, hits, target));
    }
}

}  // namespace hlt
