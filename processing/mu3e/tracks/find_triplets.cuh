// Selection and fit of triplets in one kernel, as in the first implementation of the paper (D. vom Bruch, "Track and
// Vertex Reconstruction on GPUs for the Mu3e Experiment", DESY-PROC-2014-05, section 4). The sequence `one_kernel` runs
// it in place of mu3e_select_triplets and mu3e_fit_triplets, with the same result.
//
// In: the hits of a sub-slice. Out: the number of triplets, and the triplets of tracks. One block per event. A thread
// takes a hit of layer 0 and fits each of its triplets at once; the few that pass are appended in any order. Each one
// is then put in the place that the number of smaller ones gives. Bounds: mu3e_max_combinations, mu3e_max_triplets,
// mu3e_max_tracks.
#pragma once

#include "mu3e/tracks/fit_triplets.cuh"
#include "mu3e/tracks/generated/mu3e_find_triplets.h"

HLT_KERNEL(mu3e_find_triplets)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    // Triplets that begin behind the sub-slice have this bit.
    constexpr uint64_t begins_behind = uint64_t{1} << 63;
    __shared__ uint64_t found[hlt::mu3e_max_tracks];
    __shared__ uint32_t n_combinations, n_found, n_selected, n_own_selected, n_own;
    if (threadIdx.x == 0) n_combinations = n_found = n_selected = n_own_selected = n_own = 0;
    __syncthreads();
    const hlt::event_hits hits = hlt::hits_of_event(p, event);
    const hlt::geometric_cuts cuts = hlt::cuts_of(p);
    const hlt::candidate_times times = hlt::candidate_times_of(p);
    const hlt::fit_errors errors = hlt::errors_of(p);
    const hlt::fit_limits limits = hlt::limits_of(p);
    const uint32_t first = hits.begin[0];
    const uint32_t n_first = (p.events.flags[event] & hlt::margin) != 0u ? 0u : hits.begin[1] - first;
    for (uint32_t i = threadIdx.x; i < n_first; i += blockDim.x)
        atomicAdd(&n_combinations, hlt::combinations_of(hits, first + i, cuts.hit_window));
    __syncthreads();
    const bool crowded = n_combinations > hlt::mu3e_max_combinations;
    const uint32_t n = crowded ? 0u : n_first;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        hlt::for_triplets(hits, first + i, cuts, times, [&](uint32_t j, uint32_t k, uint32_t time) {
            const bool own = time < times.end;
            atomicAdd(&n_selected, 1u);
            if (own) atomicAdd(&n_own_selected, 1u);
            if (!hlt::passes_fit(hits, first + i, j, k, errors, limits)) return;
            const uint32_t at = atomicAdd(&n_found, 1u);
            if (own) atomicAdd(&n_own, 1u);
            if (at < hlt::mu3e_max_tracks) found[at] = hlt::triplet_word(first + i, j, k) | (own ? 0u : begins_behind);
        });
    __syncthreads();
    const bool too_many_triplets = crowded || n_selected > hlt::mu3e_max_triplets;
    const bool too_many = !too_many_triplets && n_found > hlt::mu3e_max_tracks;
    const uint32_t n_kept = too_many_triplets || too_many ? 0u : n_found;
    for (uint32_t t = threadIdx.x; t < n_kept; t += blockDim.x) {
        uint32_t at = 0;
        for (uint32_t other = 0; other < n_kept; ++other) at += found[other] < found[t] ? 1u : 0u;
        p.mu3e_tracks.fitted[p.mu3e_tracks.first(event) + at] = found[t] & ~begins_behind;
    }
    if (threadIdx.x != 0) return;
    p.mu3e_triplets.count[event] = too_many_triplets ? 0u : n_selected;
    p.mu3e_triplets.own[event] = too_many_triplets ? 0u : n_own_selected;
    p.mu3e_tracks.count[event] = n_kept;
    p.mu3e_tracks.own[event] = n_kept != 0u ? n_own : 0u;
    const uint32_t flags =
        (too_many_triplets ? uint32_t{hlt::too_many_triplets} : 0u) | (too_many ? uint32_t{hlt::too_many_tracks} : 0u);
    if (flags != 0u) p.events.flags[event] |= flags;
}
