// HA4 with features on the fly: labels of the runs of each strip, in chunks of 32 pixels; 4-connected.
//
// In:  the rows of the image. Out: pixels.label, moving.features at the first pixels of the runs of chunks;
// image_parts.threshold, strip_rows. One block per part, which takes strip by strip; a warp takes a row.
#pragma once

#include "imaging/gpu_labelling/features/moving.cuh"
#include "imaging/gpu_labelling/ha4_32/generated/ccl_ha4_32_otf_label.h"
#include "imaging/gpu_labelling/strips.cuh"

HLT_KERNEL(ccl_ha4_32_otf_label)
{
    if (!p.takes(blockIdx.x)) return;
    if (threadIdx.x == 0) {
        p.image_parts.threshold[blockIdx.x] = p.threshold;
        p.image_parts.strip_rows[blockIdx.x] = hlt::warps_of_block();
    }
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.threshold);
    const hlt::moving_labels labels{p.pixels.label + p.pixels.first(part.event),
                                    p.moving.features + p.moving.first(part.event)};
    hlt::label_strips<uint32_t>(part, false, labels);
}
