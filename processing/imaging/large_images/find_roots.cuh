// The first run of the component of each run, and how many components begin in each part.
//
// In:  runs.parent. Out: runs.label [run]: the number of that run in the event; image_parts.root_count [part].
// One block per part; threads stride over its runs. No block changes a parent.
#pragma once

#include "framework/generated/launch_types.h"
#include "imaging/large_images/generated/ccl_find_roots.h"

HLT_KERNEL(ccl_find_roots)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t run = p.runs.first(p.event_of(blockIdx.x));
    const uint32_t* const parents = p.runs.parent + run;
    uint32_t* const roots = p.runs.label + run;
    const uint32_t first = p.image_parts.first_run[blockIdx.x];
    const uint32_t last = first + p.image_parts.run_count[blockIdx.x];
    uint32_t n = 0;
    for (uint32_t i = first + threadIdx.x; i < last; i += blockDim.x) {
        uint32_t root = parents[i];
        while (parents[root] != root) root = parents[root];
        roots[i] = root;
        n += root == i ? 1u : 0u;
    }
    uint32_t total;
    hlt::block_exclusive_sum(n, scratch, total);
    if (threadIdx.x == 0) p.image_parts.root_count[blockIdx.x] = total;
}
