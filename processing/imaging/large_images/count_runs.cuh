// Number of runs of foreground pixels in each row (A. Hennequin, Performance optimization for the LHCb experiment, PhD
// thesis, Sorbonne Universite, 2022, section 4.4.1, first phase of FLSL).
//
// In:  the rows of the image. Out: image_rows.runs [row]: the number of the first run in its part, and their count;
// image_parts.run_count, threshold, reach [part].
// One block per part; each thread counts whole rows. Bounds: as ccl_find_runs.
#pragma once

#include "framework/generated/launch_types.h"
#include "imaging/components/foreground.cuh"
#include "imaging/images/strip.cuh"
#include "imaging/large_images/generated/ccl_count_runs.h"
#include "imaging/large_images/row_ranges.cuh"

HLT_KERNEL(ccl_count_runs)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t event = p.event_of(blockIdx.x);
    const hlt::image_shape shape = p.images.shape[event];
    const uint32_t first_row = p.image_rows.first(event);
    const hlt::row_part rows = hlt::rows_of_part(blockIdx.x - event * p.n_parts, p.image_rows.count[event]);
    uint32_t running = 0;
    for (uint32_t base = rows.first; base < rows.last; base += blockDim.x) {
        const uint32_t y = base + threadIdx.x;
        const uint32_t data = y < rows.last ? p.image_rows.data[first_row + y] : hlt::no_row_data;
        const uint32_t n = data == hlt::no_row_data ? 0u : hlt::count_runs(p.input.bytes + data, shape, p.threshold);
        uint32_t total;
        const uint32_t first = running + hlt::block_exclusive_sum(n, scratch, total);
        running += total;
        if (y < rows.last) p.image_rows.runs[first_row + y] = {first, n};
    }
    if (threadIdx.x != 0) return;
    p.image_parts.run_count[blockIdx.x] = running;
    p.image_parts.threshold[blockIdx.x] = p.threshold;
    p.image_parts.reach[blockIdx.x] = p.diagonal != 0u ? 1u : 0u;
}
