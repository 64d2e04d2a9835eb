// The constructor with a pool: a thread whose tracklet has ended takes the next start hit of the slice at once (D.
// Rohr, diploma thesis, Heidelberg, 2010, section 6.2.2: tracklet pool and simple scheduler).
//
// In and out: as tpc_construct_tracklets, bit by bit: no result depends on which thread makes a tracklet. One block per
// slice; a counter in shared memory gives the next start hit. Threads of a warp are at different rows, in different
// directions.
#pragma once

#include "alice/tpc/schedules/generated/tpc_construct_from_pool.h"
#include "alice/tpc/tracks/longest_tracklets.cuh"

HLT_KERNEL(tpc_construct_from_pool)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t n_tracklets, crowded, next_start;
    if (threadIdx.x == 0) n_tracklets = crowded = next_start = 0;
    hlt::tabulate_rows(p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows,
                       p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers, rows, scratch);
    const hlt::constructed_slice slice = hlt::constructed_slice_of(p, rows, blockIdx.x);
    slice.clear();
    hlt::block_barrier();

    hlt::tracklet_hits hits;
    hlt::tracklet_progress at;
    at.stage = hlt::tracklet_stage::none;
    bool is_crowded = false;
    // One loop over steps, whatever their stage: a lane does not wait for the others of its warp.
    for (uint32_t id = 0;;) {
        if (!at.has_steps()) {
            id = atomicAdd(&next_start, 1u);
            if (id >= slice.n_starts) break;
            hlt::begin_tracklet(slice.in, slice.starts[id], hits, at);
        }
        if (at.has_steps()) hlt::step_tracklet(slice.in, hits, at, is_crowded);
        if (at.stage == hlt::tracklet_stage::top) hlt::turn_tracklet(slice.in, hits, at);
        if (at.stage == hlt::tracklet_stage::found) {
            atomicAdd(&n_tracklets, 1u);
            slice.enter(hits, at.first, at.last, at.n, id);
            at.stage = hlt::tracklet_stage::none;
        }
    }
    if (is_crowded) atomicOr(&crowded, 1u);
    hlt::block_barrier();
    slice.count_owned();
    if (threadIdx.x == 0) hlt::note_tracklets(p, blockIdx.x, n_tracklets, crowded != 0u);
}
