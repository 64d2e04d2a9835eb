// Numbers the components that begin in a part, in the order of their first pixels.
//
// In:  the rows of the image, image_rows.roots [row], image_parts.threshold, first_component. Out: pixels.label of the
// first pixel of each component: its number and component_bit; image_rows.roots: number of the first one of each row.
// One block per part; a thread takes whole rows, then a warp does, a lane a pixel.
#pragma once

#include "framework/generated/launch_types.h"
#include "imaging/gpu_labelling/chunk_masks.cuh"
#include "imaging/gpu_labelling/label_image.cuh"
#include "imaging/gpu_labelling/labels/generated/ccl_number_labels.h"

HLT_KERNEL(ccl_number_labels)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.image_parts.threshold[blockIdx.x]);
    uint32_t* const labels = p.pixels.label + p.pixels.first(part.event);
    uint32_t* const row_roots = p.image_rows.roots + p.image_rows.first(part.event);
    uint32_t running = p.image_parts.first_component[blockIdx.x];
    for (uint32_t base = part.rows.first; base < part.rows.last; base += blockDim.x) {
        const uint32_t y = base + threadIdx.x;
        const uint32_t n = y < part.rows.last ? row_roots[y] : 0u;
        uint32_t total;
        const uint32_t first = running + hlt::block_exclusive_sum(n, scratch, total);
        running += total;
        if (y < part.rows.last) row_roots[y] = first;
    }
    hlt::block_barrier();
    for (uint32_t y = part.rows.first + hlt::warp_of_thread(); y < part.rows.last; y += hlt::warps_of_block()) {
        const uint8_t* const row = part.row(y);
        uint32_t number = row_roots[y], last = 0;
        for (uint32_t x = 0; row != nullptr && x < part.shape.width; x += 32u) {
            const uint32_t mask = hlt::mask_of_warp(row, part.shape, part.threshold, x);
            hlt::for_each_set(hlt::starts_of_runs(mask, last != 0u), [&](bool active, uint32_t tx) {
                const uint32_t k = y * part.stride + x + tx;
                const bool is_root = active && labels[k] == k;
                const uint32_t roots = __ballot_sync(hlt::warp_lanes(), is_root);
                if (is_root)
                    labels[k] =
                        (number + static_cast<uint32_t>(__popc(roots & hlt::lanes_before()))) | hlt::component_bit;
                number += static_cast<uint32_t>(__popc(roots));
            });
            last = mask >> 31;
        }
    }
}
