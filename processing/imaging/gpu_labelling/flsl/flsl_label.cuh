// FLSL: finds the runs of the rows of a part and joins those that touch.
//
// In:  the rows of the image. Out: image_rows.edge_count [row], pixels.edge, label_chunks.edges, pixels.label at the
// first pixels of runs; image_parts.threshold, reach. One block per part; a warp takes whole rows, a lane a pixel, then
// a run.
#pragma once

#include "imaging/gpu_labelling/flsl/generated/ccl_flsl_label.h"
#include "imaging/gpu_labelling/flsl/runs.cuh"

HLT_KERNEL(ccl_flsl_label)
{
    if (!p.takes(blockIdx.x)) return;
    if (threadIdx.x == 0) {
        p.image_parts.threshold[blockIdx.x] = p.threshold;
        p.image_parts.reach[blockIdx.x] = p.diagonal != 0u ? 1u : 0u;
    }
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, p.threshold);
    const hlt::plain_labels labels{p.pixels.label + p.pixels.first(part.event)};
    hlt::label_runs_of_part(p, part, p.diagonal != 0u ? 1u : 0u, labels);
}
