// Intensities of components of images of 8 bits, which need all pixels and do not move with labels.
//
// In:  the rows of the image, pixels.label, components.count. Out: components.intensity, weighted_x, weighted_y. One
// block per part; a warp takes whole rows, a lane the start of a run of a chunk. A run that goes on in the next chunk
// is labelled there again by HA4 only, so its label is that of the whole run.
#pragma once

#include "imaging/components/generated/component_types.h"
#include "imaging/gpu_labelling/chunk_masks.cuh"
#include "imaging/gpu_labelling/features/generated/ccl_measure_intensities.h"
#include "imaging/gpu_labelling/label_image.cuh"
#include "imaging/gpu_labelling/run_features.cuh"

HLT_KERNEL(ccl_measure_intensities)
{
    if (!p.takes(blockIdx.x)) return;
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.image_parts.threshold[blockIdx.x]);
    if (part.shape.bits != 8u) return;
    const uint32_t* const labels = p.pixels.label + p.pixels.first(part.event);
    const uint32_t n_components = p.components.count[part.event], first = p.components.first(part.event);
    for (uint32_t y = part.rows.first + hlt::warp_of_thread(); y < part.rows.last; y += hlt::warps_of_block()) {
        const uint8_t* const row = part.row(y);
        uint32_t length = 0;
        for (uint32_t x = 0; row != nullptr && x < part.shape.width; x += 32u) {
            const uint32_t mask = hlt::mask_of_warp(row, part.shape, part.threshold, x);
            hlt::for_each_set(hlt::starts_of_runs(mask, false), [&](bool active, uint32_t tx) {
                if (!active) return;
                const uint32_t k = y * part.stride + x + tx - (tx == 0u ? length : 0u);
                const uint32_t component = hlt::component_of_label(labels, k);
                if (component >= n_components) return;
                const uint32_t end = x + tx + hlt::end_distance(mask, tx);
                hlt::add_intensities(p.components, first + component, y,
                                     hlt::features_of_run(row, part.shape, x + tx, end));
            });
            length = hlt::length_at_right_edge(mask, length);
        }
    }
}
