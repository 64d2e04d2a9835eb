// Row blocks: the steps of tracklets in tpc_row_block rows (D. Rohr, diploma thesis, Heidelberg, 2010,
// section 6.2.2.5).
//
// In and out: tpc_parked; a flag. The launches of a sequence have the constant row_block 0, 1, ...: first the blocks of
// rows upwards, then downwards. One block per slice. It collects the tracklets whose next step is in its rows, and each
// of its threads takes one: so they have about the same number of steps, and few threads wait for the others. The order
// of launches replaces the pools of the thesis, whose blocks wait for each other inside of one launch.
#pragma once

#include "alice/tpc/schedules/generated/tpc_extend_tracklets.h"
#include "alice/tpc/schedules/parked_tracklet.cuh"

HLT_KERNEL(tpc_extend_tracklets)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint16_t queue[2u * hlt::max_block_size];
    __shared__ uint32_t crowded;
    if (threadIdx.x == 0) crowded = 0;
    hlt::tabulate_rows(p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows,
                       p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers, rows, scratch);
    const hlt::tracklet_input in = hlt::tracklet_input_of(p, rows, blockIdx.x);
    const hlt::parked_slice parked = hlt::parked_slice_of(p, blockIdx.x);
    const bool is_up = p.row_block < hlt::tpc_row_blocks;
    const uint32_t number = is_up ? p.row_block : 2u * hlt::tpc_row_blocks - 1u - p.row_block;
    const uint32_t first_row = number * hlt::tpc_row_block, end_row = first_row + hlt::tpc_row_block;
    const auto is_here = [&](hlt::tracklet_stage stage, uint32_t row) {
        const bool same_way = is_up ? stage <= hlt::tracklet_stage::up : stage == hlt::tracklet_stage::down;
        return same_way && row >= first_row && row < end_row;
    };
    bool is_crowded = false;
    hlt::for_compacted(
        parked, queue, scratch, [&](uint32_t i) { return is_here(parked.stage(i), parked.at[i] & 0xFFu); },
        [&](uint32_t i) {
            const hlt::parked_hits hits = parked.hits(i);
            hlt::tracklet_progress at = parked.unpark(i);
            while (is_here(at.stage, at.row)) hlt::step_tracklet(in, hits, at, is_crowded);
            parked.park(i, at);
        });
    if (is_crowded) atomicOr(&crowded, 1u);
    hlt::block_barrier();
    if (threadIdx.x == 0 && crowded != 0u)
        hlt::set_bits_between_blocks(&p.events.flags[p.event_of(blockIdx.x)], uint32_t{hlt::crowded_clusters});
}
