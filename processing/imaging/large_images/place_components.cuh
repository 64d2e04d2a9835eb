// Prefix sum of the numbers of components over the parts of each image; clears the features of the components.
//
// In:  image_parts.root_count [part]. Out: image_parts.first_component [part], numbers of components, a flag if there
// are too many, the columns of components. One block per event; threads stride over parts, then over components.
#pragma once

#include "imaging/components/clear_features.cuh"
#include "imaging/images/generated/image_flags.h"
#include "imaging/large_images/generated/ccl_place_components.h"
#include "imaging/large_images/row_ranges.cuh"

HLT_KERNEL(ccl_place_components)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t first_part = event * hlt::n_image_parts;
    const uint32_t n_all =
        hlt::sum_over_parts(p.image_parts.root_count + first_part, p.image_parts.first_component + first_part, scratch);
    const uint32_t n_components = hlt::min_of(n_all, p.components.bound[event]);
    hlt::clear_features(p.components, p.components.first(event), n_components);
    if (threadIdx.x != 0) return;
    p.all_components.count[event] = n_all;
    p.components.count[event] = n_components;
    if (n_all > p.components.bound[event]) p.events.flags[event] |= hlt::too_many_components;
}
