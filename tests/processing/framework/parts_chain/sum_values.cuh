// Sum of the values of a slice. One block per slice; its threads stride over the values.
#pragma once

#include "parts/generated/parts_sum_values.h"

HLT_KERNEL(parts_sum_values)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    const uint8_t* const values = p.slices.values + p.slices.first(blockIdx.x);
    uint32_t mine = 0;
    for (uint32_t i = threadIdx.x; i < p.slices.count[blockIdx.x]; i += blockDim.x) mine += values[i];
    if (mine != 0) atomicAdd(&sum, mine);
    __syncthreads();
    if (threadIdx.x == 0) p.slices.sum[blockIdx.x] = sum;
}
