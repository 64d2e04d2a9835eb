// Step IV: the longest tracklet on each cluster (D. Rohr, diploma thesis, Heidelberg, 2010, section 2.3.4).
//
// In:  the grid, the links, the start hits. Out: tpc_clusters.weights: clusters and number of the longest tracklet on
// each cluster (of equal lengths the highest number); tpc_start_hits.owned: clusters of which each tracklet is the
// longest; tpc_slices.tracklets. One block per slice; threads stride over the start hits (the fixed schedule of section
// 6.2.2). Tracklets are not stored: a track has five seeds and each makes all of it, so that their clusters would take
// ten bytes for each cluster. The selection makes the few again that own clusters.
#pragma once

#include "alice/tpc/tracks/generated/tpc_construct_tracklets.h"
#include "alice/tpc/tracks/longest_tracklets.cuh"

HLT_KERNEL(tpc_construct_tracklets)
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

    for (uint32_t id = threadIdx.x; id < slice.n_starts; id += blockDim.x) {
        hlt::tracklet_hits hits;
        bool is_crowded = false;
        const bool found = hlt::construct_tracklet(slice.in, slice.starts[id], hits, is_crowded);
        if (is_crowded) atomicOr(&crowded, 1u);
        if (!found) continue;
        atomicAdd(&n_tracklets, 1u);
        slice.enter(hits, hits.first, hits.last, hits.n, id);
    }
    hlt::block_barrier();
    slice.count_owned();
    if (threadIdx.x == 0) hlt::note_tracklets(p, blockIdx.x, n_tracklets, crowded != 0u);
}
