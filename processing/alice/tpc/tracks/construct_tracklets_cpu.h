// The constructor with seeds in the lanes of vectors (wide_tracklets.h).
#pragma once

#include "alice/tpc/tracks/construct_tracklets.cuh"
#include "alice/tpc/tracks/wide_tracklets.h"

HLT_CPU_FORM(tpc_construct_tracklets)
{
    if constexpr (!hlt::compares_eight_lanes) return tpc_construct_tracklets(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    hlt::tpc_row rows[hlt::tpc_rows];
    uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::tabulate_rows(p.tpc_slices.row_counts + event * hlt::tpc_rows, p.tpc_slices.boxes + event * hlt::tpc_chambers,
                       rows, scratch);
    const hlt::tracklet_input in = hlt::tracklet_input_of(p, rows, event);
    uint32_t* const weights = p.tpc_clusters.weights + p.tpc_clusters.first(event);
    const uint32_t n_clusters = hlt::clusters_of_rows(rows);
    const uint32_t* const starts = p.tpc_start_hits.cluster + p.tpc_start_hits.first(event);
    uint32_t* const owned = p.tpc_start_hits.owned + p.tpc_start_hits.first(event);
    const uint32_t n_starts = p.tpc_slices.start_hits[event];
    std::memset(weights, 0, n_clusters * sizeof *weights);
    std::memset(owned, 0, n_starts * sizeof *owned);
    hlt::wide_tracklets tracklets(in);
    uint32_t n_tracklets = 0;
    bool crowded = false;
    for (uint32_t begin = 0; begin < n_starts; begin += hlt::tpc_seeds_together) {
        const uint32_t n = hlt::min_of(n_starts - begin, hlt::tpc_seeds_together);
        crowded |= tracklets.construct(starts + begin, n);
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t n_hits = tracklets.n_hits(i);
            if (n_hits == 0u) continue;
            ++n_tracklets;
            const uint32_t weight = n_hits << 16 | (begin + i);
            tracklets.for_hits(i, [&](uint32_t row, uint32_t number) {
                uint32_t& of_cluster = weights[rows[row].first + number];
                of_cluster = hlt::max_of(of_cluster, weight);
            });
        }
    }
    for (uint32_t i = 0; i < n_clusters; ++i)
        if (weights[i] != 0u) ++owned[weights[i] & 0xFFFFu];
    p.tpc_slices.tracklets[event] = n_tracklets;
    if (crowded) hlt::set_bits_between_blocks(&p.events.flags[p.event_of(event)], uint32_t{hlt::crowded_clusters});
}
