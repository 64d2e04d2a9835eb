// Row blocks, first launch: the tracklets of start hits before their first step (D. Rohr, diploma thesis, Heidelberg,
// 2010, section 6.2.2.5).
//
// In:  the grid, the links, the start hits. Out: tpc_parked. One block per slice; threads stride over the start hits.
// Bounds: a place for each 16 clusters of the slice, and one more. Start hits beyond have no place;
// tpc_end_tracklets makes their tracklets in one go.
#pragma once

#include "alice/tpc/schedules/generated/tpc_begin_tracklets.h"
#include "alice/tpc/schedules/parked_tracklet.cuh"

HLT_KERNEL(tpc_begin_tracklets)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::tabulate_rows(p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows,
                       p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers, rows, scratch);
    const hlt::tracklet_input in = hlt::tracklet_input_of(p, rows, blockIdx.x);
    const uint32_t* const starts = p.tpc_start_hits.cluster + p.tpc_start_hits.first(blockIdx.x);
    const hlt::parked_slice parked = hlt::parked_slice_of(p, blockIdx.x);
    for (uint32_t i = threadIdx.x; i < parked.n; i += blockDim.x) {
        const hlt::parked_hits hits = parked.hits(i);
        hlt::tracklet_progress at;
        hlt::begin_tracklet(in, starts[i], hits, at);
        parked.park(i, at);
    }
}
