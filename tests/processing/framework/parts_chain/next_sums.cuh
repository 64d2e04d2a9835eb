// The sum of the slice that follows each slice; the first one follows the last. One block per slice.
#pragma once

#include "parts/generated/parts_next_sums.h"

HLT_KERNEL(parts_next_sums)
{
    if (!p.takes(blockIdx.x) || threadIdx.x != 0) return;
    const uint32_t first = p.event_of(blockIdx.x) * p.n_parts;
    p.slices.next_sum[blockIdx.x] = p.slices.sum[first + (blockIdx.x - first + 1u) % p.n_parts];
}
