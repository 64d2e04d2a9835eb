// Counting a value in a histogram (processing/selection/evaluation/histograms.py does the same with NumPy).
#pragma once

#include "framework/device/platform.cuh"

namespace hlt::lines {

/// Add one to the counter of a value: the first is for what lies below `low`, then come `n_bins` equal bins, what lies
/// at `high` or above, and what is not a number. `per_unit` is the number of bins per unit. Counters are modulo 2^32.
__device__ void count_value(uint32_t* counters, float value, float low, float high, float per_unit, uint32_t n_bins)
{
    uint32_t place = n_bins + 2u;
    if (value < low) {
        place = 0;
    } else if (value >= high) {
        place = n_bins + 1u;
    } else if (value == value) {
        const uint32_t bin = static_cast<uint32_t>((value - low) * per_unit);
        place = 1u + (bin < n_bins ? bin : n_bins - 1u);
    }
    atomicAdd(counters + place, 1u);
}

}  // namespace hlt::lines
