// Labels of the pixels of a part after Playne and Hawick: each pixel begins with its first neighbour as parent.
//
// In:  the rows of the image. Out: pixels.label, image_parts.threshold, reach. One block per part; a warp takes whole
// rows, a lane a pixel. Neighbours in other parts come later.
#pragma once

#include "imaging/gpu_labelling/pixelwise/generated/ccl_playne_label.h"
#include "imaging/gpu_labelling/pixelwise/neighbours.cuh"

HLT_KERNEL(ccl_playne_label)
{
    if (!p.takes(blockIdx.x)) return;
    if (threadIdx.x == 0) {
        p.image_parts.threshold[blockIdx.x] = p.threshold;
        p.image_parts.reach[blockIdx.x] = p.diagonal != 0u ? 1u : 0u;
    }
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.threshold);
    uint32_t* const labels = p.pixels.label + p.pixels.first(part.event);
    const bool corners = p.diagonal != 0u;
    hlt::for_each_pixel(part, part.rows.first, part.rows.last, false,
                        [&](uint32_t k, uint32_t, uint32_t, const hlt::earlier_neighbours& near) {
                            uint32_t parent = near.left ? k - 1u : k;
                            if (corners && near.above_right) parent = k - part.stride + 1u;
                            if (near.above) parent = k - part.stride;
                            if (corners && near.above_left) parent = k - part.stride - 1u;
                            labels[k] = parent;
                        });
    hlt::block_barrier();
    // Analysis: short ways to the roots for the joints that follow.
    hlt::for_each_pixel(part, part.rows.first, part.rows.last, false,
                        [&](uint32_t k, uint32_t, uint32_t, const hlt::earlier_neighbours&) {
                            hlt::lower_between_blocks(labels + k, hlt::root_of_label(labels, k));
                        });
    hlt::block_barrier();
    hlt::for_each_pixel(part, part.rows.first, part.rows.last, false,
                        [&](uint32_t k, uint32_t, uint32_t, const hlt::earlier_neighbours& near) {
                            if (!corners) {
                                if (near.above && near.left && !near.above_left) hlt::join_labels(labels, k, k - 1u);
                            } else if (!near.above && near.above_right) {
                                // The parent is one of the two sides; the other one is still apart.
                                if (near.above_left) hlt::join_labels(labels, k, k - part.stride + 1u);
                                if (!near.above_left && near.left) hlt::join_labels(labels, k, k - 1u);
                            }
                        });
}
