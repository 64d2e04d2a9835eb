// Counts a value in a histogram (processing/selection/evaluation/histograms.py is the NumPy version).
#pragma once

#include "selection/expressions/lanes.cuh"

namespace hlt::lines {

/// Add one to the counter of a value. Counters in order: below `low`, `n_bins` equal bins, at or above `high`, not a
/// number. `per_unit` is the number of bins per unit. Counters are modulo 2^32.
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

/// The same for the candidates for which a condition holds.
__device__ void count_values(const lanes& at, const truths& condition, uint32_t* counters, const floats& value,
                             float low, float high, float per_unit, uint32_t n_bins)
{
#if HLT_ON_GPU
    if (condition) count_value(counters, value, low, high, per_unit, n_bins);
#else
    const truths below = value < low, above = value >= high;
    const floats inside = below | above | (value != value) ? floats{} : (value - low) * per_unit;
    const uints bin = 1u + number_words<floats>::truncated(inside);
    uints place = bin < n_bins ? bin : in_lanes(n_bins);
    place = below ? uints{} : (above ? in_lanes(n_bins + 1u) : (value == value ? place : in_lanes(n_bins + 2u)));
    for (uint32_t left = at.where(condition); left != 0; left &= left - 1) ++counters[place[__builtin_ctz(left)]];
#endif
}

}  // namespace hlt::lines
