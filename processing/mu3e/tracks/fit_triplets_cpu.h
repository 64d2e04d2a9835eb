// The fit of the common kernel with a triplet in each lane of a vector.
#pragma once

#include "framework/device/wide_lanes.h"
#include "mu3e/tracks/fit_triplets.cuh"

namespace hlt {

/// Positions of one hit of each of n_wide triplets; triplets behind the last one have those of the last.
inline lane_position<float_wide> gathered(const event_hits& hits, const uint64_t* triplets, uint32_t n, uint32_t layer)
{
    float x[n_wide], y[n_wide], z[n_wide];
    for (uint32_t l = 0; l < n_wide; ++l) {
        const uint32_t hit = hit_of_triplet(triplets[min_of(l, n - 1u)], layer);
        x[l] = hits.x[hit];
        y[l] = hits.y[hit];
        z[l] = hits.z[hit];
    }
    lane_position<float_wide> found;
    load_wide(found.x, x);
    load_wide(found.y, y);
    load_wide(found.z, z);
    return found;
}

}  // namespace hlt

HLT_CPU_FORM(mu3e_fit_triplets)
{
    if constexpr (!hlt::compares_eight_lanes) return mu3e_fit_triplets(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const hlt::event_hits hits = hlt::hits_of_event(p, event);
    const hlt::fit_errors errors = hlt::errors_of(p);
    const hlt::fit_limits limits = hlt::limits_of(p);
    const uint64_t* const triplets = p.mu3e_triplets.triplet + p.mu3e_triplets.first(event);
    uint64_t* const fitted = p.mu3e_tracks.fitted + p.mu3e_tracks.first(event);
    const uint32_t n = p.mu3e_triplets.count[event], n_own = p.mu3e_triplets.own[event];
    uint32_t n_kept = 0, n_own_kept = 0;
    for (uint32_t begin = 0; begin < n; begin += hlt::n_wide) {
        const uint64_t* const these = triplets + begin;
        const uint32_t n_here = n - begin;
        const hlt::triplet_result<hlt::float_wide> of = hlt::fit_triplet(
            hlt::terms_of_triplet(hlt::gathered(hits, these, n_here, 0), hlt::gathered(hits, these, n_here, 1),
                                  hlt::gathered(hits, these, n_here, 2), errors));
        const hlt::float_wide max_chi2 = hlt::in_all_lanes<hlt::float_wide>(limits.max_chi2),
                              least = hlt::in_all_lanes<hlt::float_wide>(limits.min_radius),
                              largest = hlt::in_all_lanes<hlt::float_wide>(limits.max_radius);
        uint32_t kept = hlt::first_bits(n_here) & hlt::bits_where<hlt::wide_comparison::at_most>(of.chi2, max_chi2) &
                        hlt::bits_where<hlt::wide_comparison::at_least>(of.radius, least) &
                        hlt::bits_where<hlt::wide_comparison::at_most>(of.radius, largest);
        for (; kept != 0u; kept &= kept - 1u) {
            const uint32_t t = begin + hlt::lowest_bit(kept);
            if (n_kept < hlt::mu3e_max_tracks) fitted[n_kept] = triplets[t];
            if (t < n_own) ++n_own_kept;
            ++n_kept;
        }
    }
    const bool too_many = n_kept > hlt::mu3e_max_tracks;
    p.mu3e_tracks.count[event] = too_many ? 0u : n_kept;
    p.mu3e_tracks.own[event] = too_many ? 0u : n_own_kept;
    if (too_many) p.events.flags[event] |= hlt::too_many_tracks;
}
