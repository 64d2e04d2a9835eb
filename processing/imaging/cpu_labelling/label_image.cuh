// The runs of each image and their 8-connected components: ccl_find_runs and ccl_label_runs in one kernel.
//
// In:  the rows of the image. Out: image_rows.runs [row], runs.span, runs.label [run], runs.count [event], the numbers
// of components, a flag if there are too many. One block per event; bounds as there. Each value of `method` is an
// algorithm of the form for the CPU; this kernel is the oracle of all of them.
#pragma once

#include "imaging/components/find_runs.cuh"
#include "imaging/components/label_runs.cuh"
#include "imaging/cpu_labelling/generated/ccl_label_image.h"
#include "imaging/cpu_labelling/generated/labelling_types.h"

HLT_KERNEL(ccl_label_image)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::find_runs(p, event, scratch);
    hlt::block_barrier();
    hlt::label_runs(p, event, 1, scratch);
}
