// Following lines on a GPU: a line stays in the registers of its thread from its two hits to the closest one.
#pragma once

#include "lhcb/velo/triplet_lines.cuh"

namespace hlt {

/// The closest of the hits that were compared. Of numbers that are not negative the bits compare as they do.
struct closest_so_far {
    uint32_t limit;  // bits of a scatter (mm^2); without rank_bits if there was a hit: less is also less without them
    uint32_t at;     // or no_hit

    /// Compare one more hit, which is called `number`.
    template <bool only_unused>
    __device__ void compare(const line_in_pair& line, const hit_point& hit, const uint32_t& used, uint32_t number)
    {
        const float dx = hit.x - (line.x + line.tx * hit.z);
        const float dy = hit.y - (line.y + line.ty * hit.z);
        const uint32_t scatter = __float_as_uint(dx * dx + dy * dy);
        if (scatter < limit && !(only_unused && used != 0u)) {
            limit = scatter & ~rank_bits;
            at = number;
        }
    }
};

/// The line of a lane of the warp, for all its lanes; without the window.
__device__ line_in_pair line_of_lane(const line_in_pair& line, uint32_t lane)
{
    return {__shfl_sync(warp_lanes(), line.x, lane), __shfl_sync(warp_lanes(), line.y, lane),
            __shfl_sync(warp_lanes(), line.tx, lane), __shfl_sync(warp_lanes(), line.ty, lane), 0, 0};
}

/// The closest hit of those in the bins of the line's window. All lanes of the warp call it; windows that are wide, or
/// wrap, they share, if `counts`.
template <bool only_unused>
__device__ closest_hit find_closest_hit(bool counts, const line_in_pair& line, const velo_hits& hits,
                                        const line_target& target)
{
    const uint32_t begin = hits.phi_bin_offset[line.first_bin], end = hits.phi_bin_offset[line.last_bin + 1];
    const bool is_wide = line.last_bin < line.first_bin || end - begin > window_width;
    const uint32_t limit = __float_as_uint(target.max_scatter);
    closest_so_far best{limit, no_hit};
#pragma unroll 1  // the lanes of a warp would part
    for (uint32_t hit = begin, last = is_wide ? begin : end; hit < last; ++hit)
        best.compare<only_unused>(line, hits.points[hit], hits.used[hit], hit);

    const uint32_t lane = threadIdx.x % warp_size;
    for (uint32_t wide = __ballot_sync(warp_lanes(), is_wide && counts); wide != 0u; wide &= wide - 1u) {
        const uint32_t owner = static_cast<uint32_t>(__ffs(static_cast<int>(wide))) - 1u;
        const line_in_pair shared = line_of_lane(line, owner);
        const uint32_t first = __shfl_sync(warp_lanes(), begin, owner), last = __shfl_sync(warp_lanes(), end, owner);
        const uint32_t pair_end = hits.module_pair_offset[target.pair + 1u];
        const uint32_t pair_hits = pair_end - hits.module_pair_offset[target.pair];
        const uint32_t n = last > first ? last - first : last + pair_hits - first;  // it wraps
        closest_so_far of_lane{limit, no_hit};
#pragma unroll 1
        for (uint32_t i = lane; i < n; i += n_warp_lanes()) {
            const uint32_t hit = first + i < pair_end ? first + i : first + i - pair_hits;
            of_lane.compare<only_unused>(shared, hits.points[hit], hits.used[hit], i);
        }
        const uint32_t lowest = __reduce_min_sync(warp_lanes(), of_lane.limit);
        const uint32_t at = __reduce_min_sync(warp_lanes(), of_lane.limit == lowest ? of_lane.at : no_hit);
        if (lane == owner && at != no_hit)
            best = {lowest, first + at < pair_end ? first + at : first + at - pair_hits};
    }
    return {best.at, best.limit};
}

/// Find the hit closest to each of n lines. `line_at(i)` gives the two hits of line i and `take(i, found)` gets what is
/// found; for i >= n, too, something that does not count: all lanes of a warp call it together.
template <bool only_unused, typename LineAt, typename Take>
__device__ void follow_lines(const velo_hits& hits, const line_target& target, const line_share& share, uint32_t n,
                             LineAt line_at, Take take)
{
    for (uint32_t i = share.first; i - threadIdx.x % warp_size < n; i += share.threads) {
        const line_in_pair line = line_through(line_at(min_of(i, n - 1u)), target);
        take(i, find_closest_hit<only_unused>(i < n, line, hits, target));
    }
}

}  // namespace hlt
