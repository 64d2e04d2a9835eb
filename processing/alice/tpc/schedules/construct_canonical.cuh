// The constructor as the thesis had it first: all threads of a block are at the same row (D. Rohr, diploma thesis,
// Heidelberg, 2010, sections 2.3.4 and 6.2.2).
//
// In and out: as tpc_construct_tracklets, bit by bit. One block per slice. It takes a group of start hits, one for each
// thread, and goes through all rows upwards, then downwards. A thread waits at a barrier in each row in which its
// tracklet has no step. It is kept to be compared.
#pragma once

#include "alice/tpc/schedules/generated/tpc_construct_canonical.h"
#include "alice/tpc/tracks/longest_tracklets.cuh"

HLT_KERNEL(tpc_construct_canonical)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t n_tracklets, crowded;
    if (threadIdx.x == 0) n_tracklets = crowded = 0;
    hlt::tabulate_rows(p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows,
                       p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers, rows, scratch);
    const hlt::constructed_slice slice = hlt::constructed_slice_of(p, rows, blockIdx.x);
    slice.clear();
    hlt::block_barrier();

    for (uint32_t base = 0; base < slice.n_starts; base += blockDim.x) {
        const uint32_t id = base + threadIdx.x;
        hlt::tracklet_hits hits;
        hlt::tracklet_progress at;
        at.stage = hlt::tracklet_stage::none;
        at.row = at.first = at.last = at.n = 0;
        bool is_crowded = false;
        if (id < slice.n_starts) hlt::begin_tracklet(slice.in, slice.starts[id], hits, at);
        for (uint32_t row = 0; row < hlt::tpc_rows; ++row) {
            // Two steps where a seed ends because its track turns away: the search begins one row below.
            while (at.goes_up() && at.row <= row) hlt::step_tracklet(slice.in, hits, at, is_crowded);
            hlt::block_barrier();
        }
        if (at.stage == hlt::tracklet_stage::top) hlt::turn_tracklet(slice.in, hits, at);
        for (uint32_t row = hlt::tpc_rows; row-- > 0u;) {
            if (at.goes_down() && at.row == row) hlt::step_tracklet(slice.in, hits, at, is_crowded);
            hlt::block_barrier();
        }
        if (is_crowded) atomicOr(&crowded, 1u);
        if (at.stage != hlt::tracklet_stage::found) continue;
        atomicAdd(&n_tracklets, 1u);
        slice.enter(hits, at.first, at.last, at.n, id);
    }
    hlt::block_barrier();
    slice.count_owned();
    if (threadIdx.x == 0) hlt::note_tracklets(p, blockIdx.x, n_tracklets, crowded != 0u);
}
