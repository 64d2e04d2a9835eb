// HA4 with conflict detection: lanes of a warp sum up the features of each component before one of them adds the sum.
//
// In:  the rows of the image, pixels.label, components.count. Out: the columns of components. One block per part; a
// warp takes whole rows, chunk by chunk.
#pragma once

#include "imaging/gpu_labelling/ha4_32/generated/ccl_ha4_32_measure_cd.h"
#include "imaging/gpu_labelling/strips.cuh"

HLT_KERNEL(ccl_ha4_32_measure_cd)
{
    if (!p.takes(blockIdx.x)) return;
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.image_parts.threshold[blockIdx.x]);
    hlt::measure_chunks<uint32_t, true>(part, p.pixels.label + p.pixels.first(part.event), p.components,
                                        p.components.first(part.event), p.components.count[part.event]);
}
