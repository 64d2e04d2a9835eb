// HA4 with features on the fly: joins the first row of each strip with the row above, in chunks of
// 32 pixels.
//
// In:  the rows of the image, image_parts.threshold, strip_rows. Out: pixels.label, moving.features. One block per
// part; a warp takes whole rows.
#pragma once

#include "imaging/gpu_labelling/features/moving.cuh"
#include "imaging/gpu_labelling/ha4_32/generated/ccl_ha4_32_otf_merge.h"
#include "imaging/gpu_labelling/strips.cuh"

HLT_KERNEL(ccl_ha4_32_otf_merge)
{
    if (!p.takes(blockIdx.x)) return;
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.image_parts.threshold[blockIdx.x]);
    const hlt::moving_labels labels{p.pixels.label + p.pixels.first(part.event),
                                    p.moving.features + p.moving.first(part.event)};
    hlt::merge_strips<uint32_t>(part, p.image_parts.strip_rows[blockIdx.x], false, labels);
}
