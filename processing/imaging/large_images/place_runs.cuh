// Prefix sum of the numbers of runs over the parts of each image.
//
// In:  image_parts.run_count [part]. Out: image_parts.first_run [part], runs.count [event].
// One block per event; threads stride over its parts.
#pragma once

#include "imaging/large_images/generated/ccl_place_runs.h"
#include "imaging/large_images/row_ranges.cuh"

HLT_KERNEL(ccl_place_runs)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t first_part = event * hlt::n_image_parts;
    const uint32_t n_runs =
        hlt::sum_over_parts(p.image_parts.run_count + first_part, p.image_parts.first_run + first_part, scratch);
    if (threadIdx.x == 0) p.runs.count[event] = n_runs;
}
