// Joins the pixels of the first row of each part with those of the row above.
//
// In:  the rows of the image, image_parts.threshold, reach. Out: pixels.label. One block per part, a lane a pixel.
#pragma once

#include "imaging/gpu_labelling/pixelwise/generated/ccl_merge_pixels.h"
#include "imaging/gpu_labelling/pixelwise/neighbours.cuh"

HLT_KERNEL(ccl_merge_pixels)
{
    if (!p.takes(blockIdx.x)) return;
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.image_parts.threshold[blockIdx.x]);
    uint32_t* const labels = p.pixels.label + p.pixels.first(part.event);
    const uint32_t reach = p.image_parts.reach[blockIdx.x];
    const uint32_t last = hlt::min_of(part.rows.first + 1u, part.rows.last);
    hlt::for_each_pixel(part, part.rows.first, last, true,
                        [&](uint32_t k, uint32_t, uint32_t, const hlt::earlier_neighbours& near) {
                            hlt::join_above(labels, k, part.stride, near, reach);
                        });
}
