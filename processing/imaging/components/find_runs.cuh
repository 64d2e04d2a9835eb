// Run-length encoding of the foreground of each image (A. Hennequin, Performance optimization for the LHCb experiment,
// PhD thesis, Sorbonne Universite, 2022, section 4.4.1, first phase of FLSL).
//
// In:  the rows of the image. Out: image_rows.runs [row], runs.span [run], runs.count [event].
// One block per event; each thread encodes whole rows. Bounds: a row of w pixels has at most (w + 1) / 2 runs, and
// runs.bound has room for that many in each row that is not missing.
#pragma once

#include "framework/generated/launch_types.h"
#include "imaging/components/foreground.cuh"
#include "imaging/components/generated/ccl_find_runs.h"
#include "imaging/images/strip.cuh"

namespace hlt {

/// The threads of a block find the runs of an image; `scratch` has a word for each of their warps. Without a barrier at
/// the end.
template <typename Parameters>
__device__ void find_runs(const Parameters& p, uint32_t event, uint32_t* scratch)
{
    const image_shape shape = p.images.shape[event];
    const uint32_t n_rows = p.image_rows.count[event];
    const uint32_t first_row = p.image_rows.first(event);
    image_run* const spans = p.runs.span + p.runs.first(event);
    uint32_t running = 0;
    for (uint32_t base = 0; base < n_rows; base += blockDim.x) {
        const uint32_t y = base + threadIdx.x;
        const uint32_t data = y < n_rows ? p.image_rows.data[first_row + y] : no_row_data;
        const uint8_t* const row = p.input.bytes + (data == no_row_data ? 0u : data);
        const uint32_t n = data == no_row_data ? 0u : count_runs(row, shape, p.threshold);
        uint32_t total;
        const uint32_t first = running + block_exclusive_sum(n, scratch, total);
        running += total;
        if (y < n_rows) p.image_rows.runs[first_row + y] = {first, n};
        if (n != 0u) write_runs(row, shape, p.threshold, spans + first);
    }
    if (threadIdx.x == 0) p.runs.count[event] = running;
}

}  // namespace hlt

HLT_KERNEL(ccl_find_runs)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::find_runs(p, event, scratch);
}
