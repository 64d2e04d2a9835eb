// The geometric selection of the common kernel with hits in the lanes of a vector: those of layer 1 near a hit of layer
// 0, then those of layer 2 near each pair. A hit of layer 0 has about eight hits within the time window in each layer,
// so one vector holds them. The range of hits in time only moves forward. Triplets are listed once, not counted before.
#pragma once

#include "framework/device/wide_lanes.h"
#include "mu3e/tracks/select_triplets.cuh"

namespace hlt {

/// Hits of a layer as arrays with room behind the last one for a whole vector. Times are exact as floats.
struct layer_lanes {
    uint32_t first, n;
    float x[mu3e_max_hits + n_wide], y[mu3e_max_hits + n_wide], z[mu3e_max_hits + n_wide], time[mu3e_max_hits + n_wide];

    inline layer_lanes(const event_hits& hits, uint32_t layer)
        : first(hits.begin[layer]), n(hits.begin[layer + 1u] - hits.begin[layer])
    {
        std::memcpy(x, hits.x + first, n * sizeof(float));
        std::memcpy(y, hits.y + first, n * sizeof(float));
        std::memcpy(z, hits.z + first, n * sizeof(float));
        for (uint32_t i = 0; i < n; ++i)
            time[i] = static_cast<float>(static_cast<int32_t>(time_of_hit(hits.word[first + i])));
    }
};

/// The hits of a layer between two times that never decrease.
struct moving_range {
    const layer_lanes& layer;
    uint32_t begin = 0, end = 0;

    inline void move(float after, float before)
    {
        while (begin < layer.n && layer.time[begin] <= after) ++begin;
        while (end < layer.n && layer.time[end] < before) ++end;
    }
};

/// The sum of combinations_of for the hits of layer 0.
inline uint32_t sum_of_combinations(const event_hits& hits, uint32_t first0, uint32_t end0, const layer_lanes& one,
                                    const layer_lanes& two, float window)
{
    moving_range near_one{one}, near_two{two};
    uint32_t n = 0;
    for (uint32_t i = first0; i < end0; ++i) {
        const float t0 = static_cast<float>(time_of_hit(hits.word[i]));
        near_one.move(t0 - window, t0 + window);
        near_two.move(t0 - window, t0 + window);
        n += (near_one.end - near_one.begin) * (near_two.end - near_two.begin);
    }
    return n;
}

inline __attribute__((always_inline)) uint32_t bits_within(const float_wide& value, float limit)
{
    const float_wide limits = in_all_lanes<float_wide>(limit);
    return bits_where<wide_comparison::at_most>(value, limits) & bits_where<wide_comparison::at_most>(-value, limits);
}

}  // namespace hlt

HLT_CPU_FORM(mu3e_select_triplets)
{
    if constexpr (!hlt::compares_eight_lanes) return mu3e_select_triplets(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const hlt::event_hits hits = hlt::hits_of_event(p, event);
    const hlt::geometric_cuts cuts = hlt::cuts_of(p);
    const hlt::candidate_times times = hlt::candidate_times_of(p);
    const bool is_margin = (p.events.flags[event] & hlt::margin) != 0u;
    const uint32_t first0 = hits.begin[0], end0 = is_margin ? first0 : hits.begin[1];
    uint32_t n_own = 0, n_behind = 0;
    bool crowded = false;
    if (first0 != end0) {
        const hlt::layer_lanes one(hits, 1), two(hits, 2);
        hlt::moving_range near_one{one}, near_two{two};
        const float window = static_cast<float>(cuts.hit_window);
        crowded = hlt::sum_of_combinations(hits, first0, end0, one, two, window) > hlt::mu3e_max_combinations;
        const float begin = static_cast<float>(times.begin), end = static_cast<float>(times.end),
                    end_behind = static_cast<float>(times.end_behind);
        uint64_t behind[hlt::mu3e_max_triplets];
        uint64_t* const own = p.mu3e_triplets.triplet + p.mu3e_triplets.first(event);
        for (uint32_t i = first0; i < end0 && !crowded; ++i) {
            const float t0 = static_cast<float>(hlt::time_of_hit(hits.word[i]));
            const float x0 = hits.x[i], y0 = hits.y[i], z0 = hits.z[i];
            near_one.move(t0 - window, t0 + window);
            near_two.move(t0 - window, t0 + window);
            for (uint32_t j0 = near_one.begin; j0 < near_one.end; j0 += hlt::n_wide) {
                hlt::float_wide x1, y1, z1, t1;
                hlt::load_wide(x1, one.x + j0);
                hlt::load_wide(y1, one.y + j0);
                hlt::load_wide(z1, one.z + j0);
                hlt::load_wide(t1, one.time + j0);
                const hlt::float_wide dx01 = x1 - x0, dy01 = y1 - y0, dz01 = z1 - z0;
                const hlt::float_wide square01 = dx01 * dx01 + dy01 * dy01;
                const hlt::float_wide slope01 = dz01 / hlt::square_root(square01);
                uint32_t pairs =
                    hlt::first_bits(one.n - j0) & hlt::bits_within(dz01, cuts.z01) &
                    hlt::bits_where<hlt::wide_comparison::at_most>(
                        square01, hlt::in_all_lanes<hlt::float_wide>(cuts.square_xy01)) &
                    hlt::bits_where<hlt::wide_comparison::less>(t1, hlt::in_all_lanes<hlt::float_wide>(t0 + window));
                for (; pairs != 0u; pairs &= pairs - 1u) {
                    const uint32_t l = hlt::lowest_bit(pairs), j = j0 + l;
                    const float of_j = one.time[j], earliest = hlt::min_of(t0, of_j), latest = hlt::max_of(t0, of_j);
                    for (uint32_t k0 = near_two.begin; k0 < two.n && two.time[k0] < earliest + window;
                         k0 += hlt::n_wide) {
                        hlt::float_wide x2, y2, z2, t2;
                        hlt::load_wide(x2, two.x + k0);
                        hlt::load_wide(y2, two.y + k0);
                        hlt::load_wide(z2, two.z + k0);
                        hlt::load_wide(t2, two.time + k0);
                        const hlt::float_wide dx12 = x2 - one.x[j], dy12 = y2 - one.y[j], dz12 = z2 - one.z[j];
                        const hlt::float_wide square12 = dx12 * dx12 + dy12 * dy12;
                        uint32_t found = hlt::first_bits(two.n - k0) & hlt::bits_within(dz12, cuts.z12) &
                                         hlt::bits_where<hlt::wide_comparison::at_most>(
                                             square12, hlt::in_all_lanes<hlt::float_wide>(cuts.square_xy12)) &
                                         hlt::bits_where<hlt::wide_comparison::less>(
                                             t2, hlt::in_all_lanes<hlt::float_wide>(earliest + window)) &
                                         hlt::bits_where<hlt::wide_comparison::less>(
                                             hlt::in_all_lanes<hlt::float_wide>(latest - window), t2);
                        if (found == 0u) continue;
                        found &= hlt::bits_within(dz12 - slope01[l] * hlt::square_root(square12), cuts.z_residual);
                        for (; found != 0u; found &= found - 1u) {
                            const uint32_t k = k0 + hlt::lowest_bit(found);
                            const uint64_t triplet = hlt::triplet_word(i, one.first + j, two.first + k);
                            const float first = hlt::min_of(earliest, two.time[k]);
                            if (first < begin || first >= end_behind) continue;
                            const bool is_own = first < end;
                            uint32_t& n = is_own ? n_own : n_behind;
                            if (n < hlt::mu3e_max_triplets) (is_own ? own : behind)[n] = triplet;
                            ++n;
                        }
                    }
                }
            }
        }
        if (n_own + n_behind <= hlt::mu3e_max_triplets) std::memcpy(own + n_own, behind, n_behind * sizeof *behind);
    }
    const bool too_many = crowded || n_own + n_behind > hlt::mu3e_max_triplets;
    p.mu3e_triplets.count[event] = too_many ? 0u : n_own + n_behind;
    p.mu3e_triplets.own[event] = too_many ? 0u : n_own;
    if (too_many) p.events.flags[event] |= hlt::too_many_triplets;
}
