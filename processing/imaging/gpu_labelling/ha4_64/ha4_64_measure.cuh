// HA4: features of components; only the first lane of a run adds to them.
//
// In:  the rows of the image, pixels.label, components.count. Out: the columns of components. One block per part; a
// warp takes whole rows, chunk by chunk.
#pragma once

#include "imaging/gpu_labelling/ha4_64/generated/ccl_ha4_64_measure.h"
#include "imaging/gpu_labelling/strips.cuh"

HLT_KERNEL(ccl_ha4_64_measure)
{
    if (!p.takes(blockIdx.x)) return;
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.image_parts.threshold[blockIdx.x]);
    hlt::measure_chunks<uint64_t, false>(part, p.pixels.label + p.pixels.first(part.event), p.components,
                                         p.components.first(part.event), p.components.count[part.event]);
}
