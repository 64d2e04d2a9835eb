// Numbers of components and of runs that begin in each part of an image.
//
// In:  the rows of the image, pixels.label, image_parts.threshold. Out: image_rows.roots [row], image_parts.root_count,
// run_count [part]. One block per part; a warp takes whole rows, a lane a pixel. No block changes a label.
#pragma once

#include "framework/generated/launch_types.h"
#include "imaging/gpu_labelling/chunk_masks.cuh"
#include "imaging/gpu_labelling/label_image.cuh"
#include "imaging/gpu_labelling/labels/generated/ccl_count_labels.h"

HLT_KERNEL(ccl_count_labels)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.image_parts.threshold[blockIdx.x]);
    const uint32_t* const labels = p.pixels.label + p.pixels.first(part.event);
    uint32_t* const row_roots = p.image_rows.roots + p.image_rows.first(part.event);
    uint32_t n_runs = 0, n_roots = 0;
    for (uint32_t y = part.rows.first + hlt::warp_of_thread(); y < part.rows.last; y += hlt::warps_of_block()) {
        const uint8_t* const row = part.row(y);
        uint32_t of_row = 0, last = 0;
        for (uint32_t x = 0; row != nullptr && x < part.shape.width; x += 32u) {
            const uint32_t mask = hlt::mask_of_warp(row, part.shape, part.threshold, x);
            hlt::for_each_set(hlt::starts_of_runs(mask, last != 0u), [&](bool active, uint32_t tx) {
                const uint32_t k = y * part.stride + x + tx;
                if (!active) return;
                ++n_runs;
                if (labels[k] == k) ++of_row;
            });
            last = mask >> 31;
        }
        of_row = hlt::warp_sum(of_row);
        if (threadIdx.x % hlt::warp_size == 0u) {
            row_roots[y] = of_row;
            n_roots += of_row;
        }
    }
    uint32_t total;
    hlt::block_exclusive_sum(n_runs, scratch, total);
    if (threadIdx.x == 0) p.image_parts.run_count[blockIdx.x] = total;
    hlt::block_exclusive_sum(n_roots, scratch, total);
    if (threadIdx.x == 0) p.image_parts.root_count[blockIdx.x] = total;
}
