// Row blocks: the tracklets that are at their top turn to the way down, all in one launch, because turning has other
// code than a step (D. Rohr, diploma thesis, Heidelberg, 2010, section 6.2.2.5).
//
// In and out: tpc_parked. One block per slice.
#pragma once

#include "alice/tpc/schedules/generated/tpc_turn_tracklets.h"
#include "alice/tpc/schedules/parked_tracklet.cuh"

HLT_KERNEL(tpc_turn_tracklets)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint16_t queue[2u * hlt::max_block_size];
    hlt::tabulate_rows(p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows,
                       p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers, rows, scratch);
    const hlt::tracklet_input in = hlt::tracklet_input_of(p, rows, blockIdx.x);
    const hlt::parked_slice parked = hlt::parked_slice_of(p, blockIdx.x);
    hlt::for_compacted(
        parked, queue, scratch, [&](uint32_t i) { return parked.stage(i) == hlt::tracklet_stage::top; },
        [&](uint32_t i) {
            hlt::tracklet_progress at = parked.unpark(i);
            hlt::turn_tracklet(in, parked.hits(i), at);
            parked.park(i, at);
        });
}
