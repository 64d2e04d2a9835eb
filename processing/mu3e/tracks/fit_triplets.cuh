// The fit of the triplets that passed the geometric selection: the second of the two kernels.
//
// In: hits and triplets of a sub-slice. Out: the triplets of tracks in the same order: those whose fit has a chi2 and a
// momentum within limits. One block per event, a thread takes a triplet, so all lanes of a warp fit. The CPU form has a
// triplet in each lane of a vector. Bound: mu3e_max_tracks; with more, none is used.
#pragma once

#include "mu3e/tracks/generated/mu3e_fit_triplets.h"
#include "mu3e/tracks/hit_search.cuh"
#include "mu3e/tracks/triplet_fit.cuh"

namespace hlt {

struct fit_limits {
    float max_chi2, min_radius, max_radius;
};

template <typename Parameters>
__device__ __forceinline__ fit_limits limits_of(const Parameters& p)
{
    return {p.max_chi2, p.min_momentum / p.mev_per_mm, p.max_momentum / p.mev_per_mm};
}

template <typename Parameters>
__device__ __forceinline__ fit_errors errors_of(const Parameters& p)
{
    return {p.scattering, p.hit_error};
}

__device__ __forceinline__ lane_position<float> position_at(const event_hits& hits, uint32_t i)
{
    return {hits.x[i], hits.y[i], hits.z[i]};
}

__device__ __forceinline__ bool passes_fit(const event_hits& hits, uint32_t i, uint32_t j, uint32_t k,
                                           const fit_errors& errors, const fit_limits& limits)
{
    const triplet_result<float> of =
        fit_triplet(terms_of_triplet(position_at(hits, i), position_at(hits, j), position_at(hits, k), errors));
    return of.chi2 <= limits.max_chi2 && of.radius >= limits.min_radius && of.radius <= limits.max_radius;
}

}  // namespace hlt

HLT_KERNEL(mu3e_fit_triplets)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const hlt::event_hits hits = hlt::hits_of_event(p, event);
    const hlt::fit_errors errors = hlt::errors_of(p);
    const hlt::fit_limits limits = hlt::limits_of(p);
    const uint64_t* const triplets = p.mu3e_triplets.triplet + p.mu3e_triplets.first(event);
    uint64_t* const fitted = p.mu3e_tracks.fitted + p.mu3e_tracks.first(event);
    const uint32_t n = p.mu3e_triplets.count[event], n_own = p.mu3e_triplets.own[event];
    uint32_t n_kept = 0, n_own_kept = 0;
    for (uint32_t begin = 0; begin < n; begin += blockDim.x) {
        const uint32_t t = begin + threadIdx.x;
        const uint64_t triplet = t < n ? triplets[t] : 0u;
        const bool keeps =
            t < n && hlt::passes_fit(hits, hlt::hit_of_triplet(triplet, 0), hlt::hit_of_triplet(triplet, 1),
                                     hlt::hit_of_triplet(triplet, 2), errors, limits);
        uint32_t n_here, n_own_here;
        const uint32_t at = n_kept + hlt::block_exclusive_count(keeps, scratch, n_here);
        hlt::block_exclusive_count(keeps && t < n_own, scratch, n_own_here);
        n_kept += n_here;
        n_own_kept += n_own_here;
        if (keeps && at < hlt::mu3e_max_tracks) fitted[at] = triplet;
    }
    if (threadIdx.x != 0) return;
    const bool too_many = n_kept > hlt::mu3e_max_tracks;
    p.mu3e_tracks.count[event] = too_many ? 0u : n_kept;
    p.mu3e_tracks.own[event] = too_many ? 0u : n_own_kept;
    if (too_many) p.events.flags[event] |= hlt::too_many_tracks;
}
