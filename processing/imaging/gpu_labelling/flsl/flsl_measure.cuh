// FLSL: features of components, one addition for each run.
//
// In:  the rows of the image, image_rows.edge_count, pixels.edge, pixels.label, components.count. Out: the columns of
// components. One block per part; a warp takes whole rows, a lane a run.
#pragma once

#include "imaging/gpu_labelling/flsl/generated/ccl_flsl_measure.h"
#include "imaging/gpu_labelling/flsl/runs.cuh"

HLT_KERNEL(ccl_flsl_measure)
{
    if (!p.takes(blockIdx.x)) return;
    hlt::measure_runs_of_part<false>(p, blockIdx.x);
}
