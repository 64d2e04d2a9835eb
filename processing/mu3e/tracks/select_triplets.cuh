// Geometric selection of triplets in layers 0, 1 and 2: the first of the two kernels (D. vom Bruch, "Track and Vertex
// Reconstruction on GPUs for the Mu3e Experiment", DESY-PROC-2014-05, section 4).
//
// A triplet has a hit in each of the three layers, all within hit_window ns. Hits in successive layers are near each
// other in the transverse plane and in z, and the three are nearly on a line in z against the path. In: the hits of a
// sub-slice. Out: triplets by their hits, those that begin in the sub-slice first. One block per event. A thread takes
// a hit of layer 0; it counts its triplets, and writes them after a prefix sum, so their order does not depend on the
// threads. The CPU form has a hit of layer 2 in each lane of a vector. Bounds: mu3e_max_triplets, and, before any is
// checked, mu3e_max_combinations of hits in time; with more, none is used.
#pragma once

#include "mu3e/tracks/generated/mu3e_select_triplets.h"
#include "mu3e/tracks/hit_search.cuh"

HLT_KERNEL(mu3e_select_triplets)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const hlt::event_hits hits = hlt::hits_of_event(p, event);
    const hlt::geometric_cuts cuts = hlt::cuts_of(p);
    const hlt::candidate_times times = hlt::candidate_times_of(p);
    const uint32_t first = hits.begin[0];
    const uint32_t n_first = (p.events.flags[event] & hlt::margin) != 0u ? 0u : hits.begin[1] - first;
    uint32_t combinations = 0, n_combinations;
    for (uint32_t i = threadIdx.x; i < n_first; i += blockDim.x)
        combinations += hlt::combinations_of(hits, first + i, cuts.hit_window);
    hlt::block_exclusive_sum(combinations, scratch, n_combinations);
    const bool crowded = n_combinations > hlt::mu3e_max_combinations;
    const uint32_t n = crowded ? 0u : n_first;
    uint64_t* const triplets = p.mu3e_triplets.triplet + p.mu3e_triplets.first(event);
    // Twice: count those that begin in the sub-slice, then list all.
    uint32_t n_own = 0, n_all = 0;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        hlt::for_triplets(hits, first + i, cuts, times,
                          [&](uint32_t, uint32_t, uint32_t time) { n_own += time < times.end ? 1u : 0u; });
    uint32_t total_own;
    hlt::block_exclusive_sum(n_own, scratch, total_own);
    uint32_t next_own = 0, next_behind = total_own;
    for (uint32_t begin = 0; begin < n; begin += blockDim.x) {
        const uint32_t i = begin + threadIdx.x;
        uint32_t own = 0, behind = 0;
        if (i < n)
            hlt::for_triplets(hits, first + i, cuts, times, [&](uint32_t, uint32_t, uint32_t time) {
                if (time < times.end)
                    ++own;
                else
                    ++behind;
            });
        uint32_t n_own_here, n_behind_here;
        uint32_t at_own = next_own + hlt::block_exclusive_sum(own, scratch, n_own_here);
        uint32_t at_behind = next_behind + hlt::block_exclusive_sum(behind, scratch, n_behind_here);
        next_own += n_own_here;
        next_behind += n_behind_here;
        if (own + behind == 0u) continue;
        hlt::for_triplets(hits, first + i, cuts, times, [&](uint32_t j, uint32_t k, uint32_t time) {
            const uint32_t at = time < times.end ? at_own++ : at_behind++;
            if (at < hlt::mu3e_max_triplets) triplets[at] = hlt::triplet_word(first + i, j, k);
        });
    }
    n_all = next_behind;
    if (threadIdx.x != 0) return;
    const bool too_many = crowded || n_all > hlt::mu3e_max_triplets;
    p.mu3e_triplets.count[event] = too_many ? 0u : n_all;
    p.mu3e_triplets.own[event] = too_many ? 0u : total_own;
    if (too_many) p.events.flags[event] |= hlt::too_many_triplets;
}
