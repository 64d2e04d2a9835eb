// Segments in the bins around that of a segment.
#pragma once

#include "alice/tpc/merging/segments/segment_end.cuh"

namespace hlt {

/// Calls `visit(first, last)` for the places of the segments in the bins around a bin. The axis is periodic.
template <typename Visit>
__device__ void for_near_bins(const uint32_t* begins, uint32_t bin, const Visit& visit)
{
    const uint32_t line = bin / tpc_direction_bins, column = bin % tpc_direction_bins;
    const uint32_t last = min_of(line + tpc_slope_reach, tpc_slope_bins - 1u);
    const uint32_t begin = (column + tpc_direction_bins - tpc_direction_reach) % tpc_direction_bins;
    const uint32_t end = begin + 2u * tpc_direction_reach + 1u;
    for (uint32_t of = line > tpc_slope_reach ? line - tpc_slope_reach : 0u; of <= last; ++of) {
        const uint32_t* const of_line = begins + of * tpc_direction_bins;
        visit(of_line[begin], of_line[min_of(end, tpc_direction_bins)]);
        if (end > tpc_direction_bins) visit(of_line[0], of_line[end - tpc_direction_bins]);
    }
}

/// Calls `take(number)` for each segment in the bins around a bin. The order is not fixed.
template <typename Take>
__device__ void for_near_segments(const uint32_t* begins, const uint32_t* sorted, uint32_t bin, const Take& take)
{
    for_near_bins(begins, bin, [&](uint32_t first, uint32_t last) {
        for (uint32_t i = first; i < last; ++i) take(sorted[i]);
    });
}

}  // namespace hlt
