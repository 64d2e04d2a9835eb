// Numbers the components of a part in the order of their first runs.
//
// In:  runs.label [run]: the first run of its component. Out: runs.parent of these first runs: the number of the
// component in the event. One block per part; threads stride over its runs.
#pragma once

#include "framework/generated/launch_types.h"
#include "imaging/large_images/generated/ccl_number_roots.h"

HLT_KERNEL(ccl_number_roots)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t run = p.runs.first(p.event_of(blockIdx.x));
    const uint32_t first = p.image_parts.first_run[blockIdx.x];
    const uint32_t last = first + p.image_parts.run_count[blockIdx.x];
    uint32_t running = p.image_parts.first_component[blockIdx.x];
    for (uint32_t base = first; base < last; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        const bool is_root = i < last && p.runs.label[run + i] == i;
        uint32_t total;
        const uint32_t number = running + hlt::block_exclusive_count(is_root, scratch, total);
        if (is_root) p.runs.parent[run + i] = number;
        running += total;
    }
}
