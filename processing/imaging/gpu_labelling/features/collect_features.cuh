// Features on the fly, last step: copies them from the first pixel of each component to the component.
//
// In:  the rows of the image, pixels.label, moving.features, components.count. Out: the columns of components; for
// images of 8 bits without intensities. One block per part; a warp takes whole rows, a lane a pixel.
#pragma once

#include "imaging/components/generated/component_types.h"
#include "imaging/gpu_labelling/chunk_masks.cuh"
#include "imaging/gpu_labelling/features/generated/ccl_collect_features.h"
#include "imaging/gpu_labelling/features/moving.cuh"

HLT_KERNEL(ccl_collect_features)
{
    if (!p.takes(blockIdx.x)) return;
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.image_parts.threshold[blockIdx.x]);
    const uint32_t* const labels = p.pixels.label + p.pixels.first(part.event);
    const hlt::label_features* const features = p.moving.features + p.moving.first(part.event);
    const uint32_t n_components = p.components.count[part.event], first = p.components.first(part.event);
    const bool one_bit = part.shape.bits == 1u;
    for (uint32_t y = part.rows.first + hlt::warp_of_thread(); y < part.rows.last; y += hlt::warps_of_block()) {
        const uint8_t* const row = part.row(y);
        uint32_t last = 0;
        for (uint32_t x = 0; row != nullptr && x < part.shape.width; x += 32u) {
            const uint32_t mask = hlt::mask_of_warp(row, part.shape, part.threshold, x);
            hlt::for_each_set(hlt::starts_of_runs(mask, last != 0u), [&](bool active, uint32_t tx) {
                const uint32_t k = y * part.stride + x + tx;
                const uint32_t label = active ? labels[k] : 0u;
                const uint32_t component = label & ~hlt::component_bit;
                if ((label & hlt::component_bit) == 0u || component >= n_components) return;
                const hlt::label_features found = features[k / 2u];
                const uint32_t i = first + component;
                p.components.area[i] = found.area;
                p.components.box[i] = {found.left, y, found.right, found.bottom};
                hlt::store_sum(p.components.sum_x, i, found.sum_x);
                hlt::store_sum(p.components.sum_y, i, found.sum_y);
                hlt::store_sum(p.components.intensity, i, one_bit ? found.area : 0u);
                hlt::store_sum(p.components.weighted_x, i, one_bit ? found.sum_x : 0u);
                hlt::store_sum(p.components.weighted_y, i, one_bit ? found.sum_y : 0u);
            });
            last = mask >> 31;
        }
    }
}
