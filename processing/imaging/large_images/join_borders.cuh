// Joins the runs of adjacent parts of a group: the first row of a part with the row above. Groups come next, so the
// borders of an image are joined in a pyramid of two levels (A. Hennequin, Performance optimization for the LHCb
// experiment, PhD thesis, Sorbonne Universite, 2022, section 4.2, has one of log2(threads) levels).
//
// In:  image_rows.runs, runs.span, image_parts.reach. Out: runs.parent.
// One block per group; each thread joins whole borders. All runs that are joined here belong to parts of the group, so
// no other block changes their parents.
#pragma once

#include "imaging/components/join_rows.cuh"
#include "imaging/large_images/generated/ccl_join_borders.h"
#include "imaging/large_images/row_ranges.cuh"

HLT_KERNEL(ccl_join_borders)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t event = p.event_of(blockIdx.x), group = blockIdx.x - event * p.n_parts;
    const uint32_t n_rows = p.image_rows.count[event];
    const hlt::row_runs* const rows = p.image_rows.runs + p.image_rows.first(event);
    const hlt::image_run* const spans = p.runs.span + p.runs.first(event);
    uint32_t* const parents = p.runs.parent + p.runs.first(event);
    const uint32_t first_row = hlt::rows_of_group(group, n_rows).first;
    for (uint32_t i = 1u + threadIdx.x; i < hlt::parts_of_group; i += blockDim.x) {
        const uint32_t part = group * hlt::parts_of_group + i;
        const hlt::row_part own = hlt::rows_of_part(part, n_rows);
        // Parts before it may be empty: then its border is that of the group.
        if (own.first == own.last || own.first == first_row) continue;
        const uint32_t reach = p.image_parts.reach[event * hlt::n_image_parts + part];
        hlt::join_rows(spans, rows[own.first - 1u], rows[own.first], reach, parents);
    }
}
