// A counting sort of the objects of an event by bins.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

/// Numbers of n objects by bins: begins[bin] to begins[bin + 1] in `sorted`. bin_of(i): n_bins or more leaves object i
/// out. All threads of a block call it; scratch as in block_exclusive_sum. begins has n_bins + 1 words. The order
/// inside a bin is not fixed.
template <typename BinOf>
__device__ void sort_by_bins(uint32_t n, uint32_t n_bins, const BinOf& bin_of, uint32_t* begins, uint32_t* sorted,
                             uint32_t* scratch)
{
    for (uint32_t i = threadIdx.x; i <= n_bins; i += blockDim.x) begins[i] = 0;
    block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const uint32_t bin = bin_of(i);
        if (bin < n_bins) atomicAdd(&begins[bin + 1u], 1u);
    }
    block_barrier();
    // The word behind that of a bin gets its first place, then its next one, and at the end the first one behind it.
    uint32_t running = 0;
    for (uint32_t base = 0; base < n_bins; base += blockDim.x) {
        const uint32_t bin = base + threadIdx.x;
        const uint32_t own = bin < n_bins ? begins[bin + 1u] : 0u;
        uint32_t more;
        const uint32_t before = running + block_exclusive_sum(own, scratch, more);
        running += more;
        if (bin < n_bins) begins[bin + 1u] = before;
    }
    block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const uint32_t bin = bin_of(i);
        if (bin < n_bins) sorted[atomicAdd(&begins[bin + 1u], 1u)] = i;
    }
}

}  // namespace hlt
