// Step IV: the longest tracklet on each cluster (D. Rohr, diploma thesis, Heidelberg, 2010, section 2.3.4).
//
// In:  the grid, the links, the start hits. Out: tpc_clusters.weights: clusters and number of the longest tracklet on
// each cluster (of equal lengths the highest number); tpc_start_hits.owned: clusters of which each tracklet is the
// longest; tpc_slices.tracklets. One block per slice; threads stride over the start hits. Tracklets are not stored: a
// track has five seeds and each makes all of it, so that their clusters would take ten bytes for each cluster. The
// selection makes the few again that own clusters.
#pragma once

#include "alice/tpc/generated/tpc_flags.h"
#include "alice/tpc/tracks/generated/tpc_construct_tracklets.h"
#include "alice/tpc/tracks/tracklet.cuh"
#include "framework/device/between_blocks.cuh"

HLT_KERNEL(tpc_construct_tracklets)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t n_tracklets, crowded;
    if (threadIdx.x == 0) n_tracklets = crowded = 0;
    hlt::tabulate_rows(p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows,
                       p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers, rows, scratch);

    const hlt::tracklet_input in = hlt::tracklet_input_of(p, rows, blockIdx.x);
    uint32_t* const weights = p.tpc_clusters.weights + p.tpc_clusters.first(blockIdx.x);
    const uint32_t n_clusters = hlt::clusters_of_rows(rows);
    const uint32_t* const starts = p.tpc_start_hits.cluster + p.tpc_start_hits.first(blockIdx.x);
    uint32_t* const owned = p.tpc_start_hits.owned + p.tpc_start_hits.first(blockIdx.x);
    const uint32_t n_starts = p.tpc_slices.start_hits[blockIdx.x];
    for (uint32_t i = threadIdx.x; i < n_clusters; i += blockDim.x) weights[i] = 0;
    for (uint32_t id = threadIdx.x; id < n_starts; id += blockDim.x) owned[id] = 0;
    hlt::block_barrier();

    for (uint32_t id = threadIdx.x; id < n_starts; id += blockDim.x) {
        hlt::tracklet_hits hits;
        bool is_crowded = false;
        const bool found = hlt::construct_tracklet(in, starts[id], hits, is_crowded);
        if (is_crowded) atomicOr(&crowded, 1u);
        if (!found) continue;
        atomicAdd(&n_tracklets, 1u);
        for (uint32_t row = hits.first; row <= hits.last; ++row) {
            const uint32_t number = hits.of_row[row];
            if (number != hlt::tpc_no_cluster) atomicMax(&weights[rows[row].first + number], hits.n << 16 | id);
        }
    }
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n_clusters; i += blockDim.x)
        if (weights[i] != 0u) atomicAdd(&owned[weights[i] & 0xFFFFu], 1u);
    if (threadIdx.x != 0) return;
    p.tpc_slices.tracklets[blockIdx.x] = n_tracklets;
    if (crowded != 0u)
        hlt::set_bits_between_blocks(&p.events.flags[p.event_of(blockIdx.x)], uint32_t{hlt::crowded_clusters});
}
