// Geometric selection of triplets in layers 0, 1 and 2: the first of the two kernels (D. vom Bruch, "Track and Vertex
// Reconstruction on GPUs for the Mu3e Experiment", DESY-PROC-2014-05, section 4).
//
// A triplet has a hit in each of the three layers, all within hit_window ns. Hits in successive layers are near each
// other in the transverse plane and in z, and the three are nearly on a line in z against the path. In: the hits of a
// sub-slice. Out: triplets by their hits, those that begin in the sub-slice first. One block per event. A thread takes
// a pair of hits of layers 0 and 1 within the time window; the pairs that pass are listed, and a thread takes one of
// them with a hit of layer 2. Places come from prefix sums, so the order does not depend on the threads. The CPU form
// has a hit of layer 2 in each lane of a vector. Bounds: mu3e_max_triplets; listed_hits and listed_pairs at a time;
// and, before any is checked, mu3e_max_combinations of hits in time; with more, none is used.
#pragma once

#include "mu3e/tracks/generated/mu3e_select_triplets.h"
#include "mu3e/tracks/triplet_lists.cuh"

HLT_KERNEL(mu3e_select_triplets)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ hlt::triplet_lists lists;
    const hlt::event_hits hits = hlt::hits_of_event(p, event);
    const hlt::geometric_cuts cuts = hlt::cuts_of(p);
    const hlt::candidate_times times = hlt::candidate_times_of(p);
    const uint32_t first = hits.begin[0];
    const uint32_t n_first = (p.events.flags[event] & hlt::margin) != 0u ? 0u : hits.begin[1] - first;
    uint32_t combinations = 0, n_combinations;
    for (uint32_t i = threadIdx.x; i < n_first; i += blockDim.x)
        combinations += hlt::combinations_of(hits, first + i, cuts.hit_window);
    hlt::block_exclusive_sum(combinations, lists.scratch, n_combinations);
    const bool crowded = n_combinations > hlt::mu3e_max_combinations;
    uint32_t n_own = 0, n_all = 0;
    if (n_combinations != 0u && !crowded) {
        uint64_t* const triplets = p.mu3e_triplets.triplet + p.mu3e_triplets.first(event);
        n_own = hlt::find_triplets_from(lists, hits, cuts, {times.begin, times.end}, triplets, 0);
        n_all = hlt::find_triplets_from(lists, hits, cuts, {times.end, times.end_behind}, triplets, n_own);
    }
    if (threadIdx.x != 0) return;
    const bool too_many = crowded || n_all > hlt::mu3e_max_triplets;
    p.mu3e_triplets.count[event] = too_many ? 0u : n_all;
    p.mu3e_triplets.own[event] = too_many ? 0u : n_own;
    if (too_many) p.events.flags[event] |= hlt::too_many_triplets;
}
