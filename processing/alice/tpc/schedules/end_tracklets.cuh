// Row blocks, last launch: the longest tracklet on each cluster, from parked tracklets (D. Rohr, diploma thesis,
// Heidelberg, 2010, section 6.2.2.5).
//
// In:  tpc_parked, and what the constructor reads. Out: as tpc_construct_tracklets, bit by bit. One block per slice;
// threads stride over the start hits. Those without a place get their tracklet here; so does a tracklet that has steps
// left.
#pragma once

#include "alice/tpc/schedules/generated/tpc_end_tracklets.h"
#include "alice/tpc/schedules/parked_tracklet.cuh"

HLT_KERNEL(tpc_end_tracklets)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t n_tracklets, crowded;
    if (threadIdx.x == 0) n_tracklets = crowded = 0;
    hlt::tabulate_rows(p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows,
                       p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers, rows, scratch);
    const hlt::constructed_slice slice = hlt::constructed_slice_of(p, rows, blockIdx.x);
    const hlt::parked_slice parked = hlt::parked_slice_of(p, blockIdx.x);
    slice.clear();
    hlt::block_barrier();

    bool is_crowded = false;
    for (uint32_t id = threadIdx.x; id < parked.n; id += blockDim.x) {
        if (parked.stage(id) == hlt::tracklet_stage::none) continue;
        const hlt::parked_hits hits = parked.hits(id);
        hlt::tracklet_progress at = parked.unpark(id);
        if (at.stage != hlt::tracklet_stage::found) hlt::finish_tracklet(slice.in, hits, at, is_crowded);
        if (at.stage != hlt::tracklet_stage::found) continue;
        atomicAdd(&n_tracklets, 1u);
        slice.enter(hits, at.first, at.last, at.n, id);
    }
    for (uint32_t id = parked.n + threadIdx.x; id < slice.n_starts; id += blockDim.x) {
        hlt::tracklet_hits hits;
        if (!hlt::construct_tracklet(slice.in, slice.starts[id], hits, is_crowded)) continue;
        atomicAdd(&n_tracklets, 1u);
        slice.enter(hits, hits.first, hits.last, hits.n, id);
    }
    if (is_crowded) atomicOr(&crowded, 1u);
    hlt::block_barrier();
    slice.count_owned();
    if (threadIdx.x == 0) hlt::note_tracklets(p, blockIdx.x, n_tracklets, crowded != 0u);
}
