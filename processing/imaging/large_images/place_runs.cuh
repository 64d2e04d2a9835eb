// Prefix sum of the numbers of runs over the parts of each image.
//
// In:  image_parts.run_count [part]. Out: image_parts.first_run [part], runs.count [event].
// One block per event; threads stride over its parts.
#pragma once

#include "framework/generated/launch_types.h"
#include "imaging/large_images/generated/ccl_place_runs.h"
#include "imaging/large_images/generated/part_types.h"

HLT_KERNEL(ccl_place_runs)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t first_part = event * hlt::n_image_parts;
    uint32_t running = 0;
    for (uint32_t base = 0; base < hlt::n_image_parts; base += blockDim.x) {
        const uint32_t part = base + threadIdx.x;
        const uint32_t n = part < hlt::n_image_parts ? p.image_parts.run_count[first_part + part] : 0u;
        uint32_t total;
        const uint32_t first = running + hlt::block_exclusive_sum(n, scratch, total);
        running += total;
        if (part < hlt::n_image_parts) p.image_parts.first_run[first_part + part] = first;
    }
    if (threadIdx.x == 0) p.runs.count[event] = running;
}
