// Prefix sum of the numbers of values of all slices. One block; one thread works.
#pragma once

#include "parts/generated/parts_place_found.h"
#include "parts/generated/slice_types.h"

HLT_KERNEL(parts_place_found)
{
    if (threadIdx.x != 0) return;
    uint32_t running = 0;
    const uint32_t n = p.batch->n_events * hlt::n_slices;
    for (uint32_t i = 0; i < n; ++i) {
        p.found_offsets.offset[i] = running;
        running += p.slices.count[i];
    }
    p.found_offsets.offset[n] = running;
}
