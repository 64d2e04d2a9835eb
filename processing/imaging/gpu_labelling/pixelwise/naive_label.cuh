// Labels of the pixels of a part: each foreground pixel is joined with all neighbours that come earlier.
//
// In:  the rows of the image. Out: pixels.label, image_parts.threshold, reach. One block per part; a warp takes whole
// rows, a lane a pixel. Neighbours in other parts come later.
#pragma once

#include "imaging/gpu_labelling/pixelwise/generated/ccl_naive_label.h"
#include "imaging/gpu_labelling/pixelwise/neighbours.cuh"

HLT_KERNEL(ccl_naive_label)
{
    if (!p.takes(blockIdx.x)) return;
    if (threadIdx.x == 0) {
        p.image_parts.threshold[blockIdx.x] = p.threshold;
        p.image_parts.reach[blockIdx.x] = p.diagonal != 0u ? 1u : 0u;
    }
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.threshold);
    uint32_t* const labels = p.pixels.label + p.pixels.first(part.event);
    hlt::for_each_pixel(part, part.rows.first, part.rows.last, false,
                        [&](uint32_t k, uint32_t, uint32_t, const hlt::earlier_neighbours&) { labels[k] = k; });
    hlt::block_barrier();
    hlt::for_each_pixel(part, part.rows.first, part.rows.last, false,
                        [&](uint32_t k, uint32_t, uint32_t, const hlt::earlier_neighbours& near) {
                            if (near.left) hlt::join_labels(labels, k, k - 1u);
                            if (near.above) hlt::join_labels(labels, k, k - part.stride);
                            if (p.diagonal == 0u) return;
                            if (near.above_left) hlt::join_labels(labels, k, k - part.stride - 1u);
                            if (near.above_right) hlt::join_labels(labels, k, k - part.stride + 1u);
                        });
}
