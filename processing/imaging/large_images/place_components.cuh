// Prefix sum of the numbers of components over the parts of each image; clears the features of the components.
//
// In:  image_parts.root_count [part]. Out: image_parts.first_component [part], numbers of components, a flag if there
// are too many, the columns of components. One block per event; threads stride over parts, then over components.
#pragma once

#include "framework/generated/launch_types.h"
#include "imaging/components/clear_features.cuh"
#include "imaging/images/generated/image_flags.h"
#include "imaging/large_images/generated/ccl_place_components.h"
#include "imaging/large_images/generated/part_types.h"

HLT_KERNEL(ccl_place_components)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t first_part = event * hlt::n_image_parts;
    uint32_t running = 0;
    for (uint32_t base = 0; base < hlt::n_image_parts; base += blockDim.x) {
        const uint32_t part = base + threadIdx.x;
        const uint32_t n = part < hlt::n_image_parts ? p.image_parts.root_count[first_part + part] : 0u;
        uint32_t total;
        const uint32_t first = running + hlt::block_exclusive_sum(n, scratch, total);
        running += total;
        if (part < hlt::n_image_parts) p.image_parts.first_component[first_part + part] = first;
    }
    const uint32_t n_components = hlt::min_of(running, hlt::max_components);
    hlt::clear_features(p.components, p.components.first(event), n_components);
    if (threadIdx.x != 0) return;
    p.all_components.count[event] = running;
    p.components.count[event] = n_components;
    if (running > hlt::max_components) p.events.flags[event] |= hlt::too_many_components;
}
