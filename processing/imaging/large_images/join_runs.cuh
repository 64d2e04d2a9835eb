// The runs of the rows of a part, joined where those of adjacent rows touch. Borders of parts come later.
//
// In:  the rows of the image, image_parts.first_run, threshold, reach. Out: runs.span, runs.parent [run];
// image_rows.runs [row] with the number of the first run in the event.
// One block per part; each thread writes and joins whole rows. Bounds: as ccl_find_runs. All runs that are joined here
// belong to this part, so no other block changes their parents.
#pragma once

#include "imaging/components/foreground.cuh"
#include "imaging/components/join_rows.cuh"
#include "imaging/images/strip.cuh"
#include "imaging/large_images/generated/ccl_join_runs.h"
#include "imaging/large_images/row_ranges.cuh"

HLT_KERNEL(ccl_join_runs)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t event = p.event_of(blockIdx.x);
    const hlt::image_shape shape = p.images.shape[event];
    const uint32_t first_row = p.image_rows.first(event);
    const hlt::row_part part = hlt::rows_of_part(blockIdx.x - event * p.n_parts, p.image_rows.count[event]);
    const uint32_t threshold = p.image_parts.threshold[blockIdx.x], reach = p.image_parts.reach[blockIdx.x];
    const uint32_t first_run = p.image_parts.first_run[blockIdx.x];
    hlt::row_runs* const rows = p.image_rows.runs + first_row;
    hlt::image_run* const spans = p.runs.span + p.runs.first(event);
    uint32_t* const parents = p.runs.parent + p.runs.first(event);

    for (uint32_t y = part.first + threadIdx.x; y < part.last; y += blockDim.x) {
        const uint32_t first = first_run + rows[y].first, n = rows[y].count;
        rows[y].first = first;
        if (n == 0u) continue;
        hlt::write_runs(p.input.bytes + p.image_rows.data[first_row + y], shape, threshold, spans + first);
        for (uint32_t i = first; i < first + n; ++i) parents[i] = i;
    }
    hlt::block_barrier();
    for (uint32_t y = part.first + 1u + threadIdx.x; y < part.last; y += blockDim.x)
        hlt::join_rows(spans, rows[y - 1u], rows[y], reach, parents);
}
