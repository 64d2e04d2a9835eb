// Features of components: each foreground pixel adds itself to its component.
//
// In:  the rows of the image, pixels.label, components.count. Out: the columns of components. One block per part; a
// warp takes whole rows, a lane a pixel. All pixels of a large component change the same words: the naive way.
#pragma once

#include "imaging/gpu_labelling/pixelwise/generated/ccl_measure_pixels.h"
#include "imaging/gpu_labelling/pixelwise/neighbours.cuh"

HLT_KERNEL(ccl_measure_pixels)
{
    if (!p.takes(blockIdx.x)) return;
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.image_parts.threshold[blockIdx.x]);
    const uint32_t* const labels = p.pixels.label + p.pixels.first(part.event);
    const uint32_t n_components = p.components.count[part.event], first = p.components.first(part.event);
    hlt::for_each_pixel(part, part.rows.first, part.rows.last, false,
                        [&](uint32_t k, uint32_t x, uint32_t y, const hlt::earlier_neighbours&) {
                            const uint32_t component = hlt::component_of_label(labels, k);
                            if (component >= n_components) return;
                            const hlt::row_features pixel = hlt::features_of_run(part.row(y), part.shape, x, x + 1u);
                            hlt::add_run(p.components, first + component, y, pixel);
                        });
}
