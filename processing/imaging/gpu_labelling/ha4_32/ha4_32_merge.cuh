// HA4: joins the first row of each strip with the row above.
//
// In:  the rows of the image, image_parts.threshold, strip_rows. Out: pixels.label. One block per part; a warp takes
// whole rows. Strips of different parts are joined by atomic operations.
#pragma once

#include "imaging/gpu_labelling/ha4_32/generated/ccl_ha4_32_merge.h"
#include "imaging/gpu_labelling/strips.cuh"

HLT_KERNEL(ccl_ha4_32_merge)
{
    if (!p.takes(blockIdx.x)) return;
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.image_parts.threshold[blockIdx.x]);
    const hlt::plain_labels labels{p.pixels.label + p.pixels.first(part.event)};
    hlt::merge_strips<uint32_t>(part, p.image_parts.strip_rows[blockIdx.x], false, labels);
}
