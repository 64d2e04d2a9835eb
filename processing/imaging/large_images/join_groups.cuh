// Joins the runs of adjacent groups of parts: the first row of a group with the row above.
//
// In:  image_rows.runs, runs.span, image_parts.reach. Out: runs.parent.
// One block per event; each thread joins whole borders.
#pragma once

#include "imaging/components/join_rows.cuh"
#include "imaging/large_images/generated/ccl_join_groups.h"
#include "imaging/large_images/row_ranges.cuh"

HLT_KERNEL(ccl_join_groups)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t n_rows = p.image_rows.count[event];
    const hlt::row_runs* const rows = p.image_rows.runs + p.image_rows.first(event);
    const hlt::image_run* const spans = p.runs.span + p.runs.first(event);
    uint32_t* const parents = p.runs.parent + p.runs.first(event);
    for (uint32_t group = 1u + threadIdx.x; group < hlt::n_image_parts / hlt::parts_of_group; group += blockDim.x) {
        const hlt::row_part own = hlt::rows_of_group(group, n_rows);
        if (own.first == own.last || own.first == 0u) continue;
        const uint32_t reach = p.image_parts.reach[event * hlt::n_image_parts];
        hlt::join_rows(spans, rows[own.first - 1u], rows[own.first], reach, parents);
    }
}
