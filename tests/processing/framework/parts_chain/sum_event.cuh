// Sum over the slices of an event. One block per event; its threads stride over the slices.
#pragma once

#include "parts/generated/parts_sum_event.h"
#include "parts/generated/slice_types.h"

HLT_KERNEL(parts_sum_event)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < hlt::n_slices; k += blockDim.x) {
        const uint32_t slice = blockIdx.x * hlt::n_slices + k;
        const uint8_t* const values = p.slices.values + p.slices.first(slice);
        uint32_t sum = 0;
        for (uint32_t i = 0; i < p.slices.count[slice]; ++i) sum += values[i];
        atomicAdd(&total, sum);
    }
    __syncthreads();
    if (threadIdx.x == 0) p.events.total[blockIdx.x] = total;
}
