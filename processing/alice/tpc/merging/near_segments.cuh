// Segments in the bins around that of a segment.
#pragma once

#include "alice/tpc/merging/segment_end.cuh"

namespace hlt {

/// Calls `take(number)` for each segment in the bins around a bin. The axis is periodic. The order is not fixed.
template <typename Take>
__device__ void for_near_segments(const uint32_t* begins, const uint32_t* sorted, uint32_t bin, const Take& take)
{
    const uint32_t line = bin / tpc_direction_bins, column = bin % tpc_direction_bins;
    const uint32_t last = min_of(line + tpc_slope_reach, tpc_slope_bins - 1u);
    for (uint32_t of = line > tpc_slope_reach ? line - tpc_slope_reach : 0u; of <= last; ++of)
        for (uint32_t k = 0; k <= 2u * tpc_direction_reach; ++k) {
            const uint32_t at = (column + tpc_direction_bins - tpc_direction_reach + k) % tpc_direction_bins;
            const uint32_t* const of_bin = begins + of * tpc_direction_bins + at;
            for (uint32_t i = of_bin[0]; i < of_bin[1]; ++i) take(sorted[i]);
        }
}

}  // namespace hlt
