// FLSL: joins the runs of the first row of each part with those of the row above.
//
// In:  image_rows.edge_count, pixels.edge, label_chunks.edges, image_parts.reach. Out: pixels.label. One block per
// part; a thread takes a run.
#pragma once

#include "imaging/gpu_labelling/flsl/generated/ccl_flsl_merge.h"
#include "imaging/gpu_labelling/flsl/runs.cuh"

HLT_KERNEL(ccl_flsl_merge)
{
    if (!p.takes(blockIdx.x)) return;
    const hlt::labelled_part part = hlt::labelled_part_of(p, blockIdx.x, 0);
    const hlt::plain_labels labels{p.pixels.label + p.pixels.first(part.event)};
    hlt::join_runs_of_border(part, hlt::row_edges_of(p, part), p.image_parts.reach[blockIdx.x], labels);
}
