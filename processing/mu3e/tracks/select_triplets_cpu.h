// The geometric selection of the common kernel with hits in the lanes of a vector: those of layer 1 near a hit of layer
// 0, then those of layer 2 near each pair. A hit of layer 0 has about eight hits within the time window in each layer,
// so one vector holds them. The ranges of hits in time only move forward. Pairs and triplets leave their vectors by
// packed stores, which have no branch to mispredict. Triplets are listed once, not counted before. Bounds:
// mu3e_max_triplets, mu3e_max_hits; a full list of pairs is continued with layer 2 and emptied.
#pragma once

#include "framework/device/wide_lanes.h"
#include "mu3e/tracks/select_triplets.cuh"

namespace hlt {

/// Hits of a layer as arrays with room behind the last one for a whole vector. Times are exact as floats; those behind
/// the last hit are later than all others.
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
        store_wide(time + n, in_all_lanes<float_wide>(__builtin_inff()));
    }
};

/// Hits of a layer.
struct hit_range {
    uint32_t begin, end;
};

/// The first hit from `hit` on whose time is not less than (or: not at most) `limit`. A vector is counted at once: the
/// number of hits to pass is different for each hit of layer 0, and a loop over them would be mispredicted.
template <wide_comparison comparison>
inline __attribute__((always_inline)) uint32_t passed(const layer_lanes& layer, uint32_t hit, float limit)
{
    while (true) {
        float_wide times;
        load_wide(times, layer.time + hit);
        const uint32_t bits = bits_where<comparison>(times, in_all_lanes<float_wide>(limit));
        if (bits != all_wide) return hit + static_cast<uint32_t>(__builtin_popcount(bits));
        hit += n_wide;
    }
}

/// The hits of a layer between two times that never decrease.
inline void move_range(hit_range& range, const layer_lanes& layer, float after, float before)
{
    range.begin = passed<wide_comparison::at_most>(layer, range.begin, after);
    range.end = passed<wide_comparison::less>(layer, range.end, before);
}

/// Hits of layers 1 and 2 within the time window of each hit of layer 0.
struct ranges_of_hits {
    float time[mu3e_max_hits];
    hit_range one[mu3e_max_hits], two[mu3e_max_hits];
    uint32_t combinations = 0;

    inline ranges_of_hits(const event_hits& hits, uint32_t first0, uint32_t end0, const layer_lanes& layer1,
                          const layer_lanes& layer2, float window)
    {
        hit_range near_one{}, near_two{};
        for (uint32_t i = first0; i < end0; ++i) {
            const float t0 = static_cast<float>(static_cast<int32_t>(time_of_hit(hits.word[i])));
            move_range(near_one, layer1, t0 - window, t0 + window);
            move_range(near_two, layer2, t0 - window, t0 + window);
            time[i - first0] = t0;
            one[i - first0] = near_one;
            two[i - first0] = near_two;
            combinations += (near_one.end - near_one.begin) * (near_two.end - near_two.begin);
        }
    }
};

/// Pairs of a hit of layer 0 and one of layer 1, with room for a vector more; dz and slope share their place.
struct hit_pairs {
    static constexpr uint32_t most = 512;
    uint32_t n = 0;
    uint32_t i[most + n_wide], j[most + n_wide];
    float square_xy[most + n_wide], slope[most + n_wide];

    inline void make_slopes()
    {
        for (uint32_t m = 0; m < n; m += n_wide) {
            float_wide dz, square;
            load_wide(dz, slope + m);
            load_wide(square, square_xy + m);
            store_wide(slope + m, dz / square_root(square));
        }
    }
};

/// Triplets: hits of layer 0, and the lower words of triplets. n counts also those behind the bound.
struct triplet_lanes {
    uint32_t n = 0;
    uint32_t upper[mu3e_max_triplets + n_wide], lower[mu3e_max_triplets + n_wide];

    inline __attribute__((always_inline)) void add(uint32_t i, const uint_wide& words, uint32_t bits)
    {
        if (n <= mu3e_max_triplets) {
            store_packed_wide(lower + n, words, bits);
            store_wide(upper + n, in_all_lanes<uint_wide>(i));
        }
        n += static_cast<uint32_t>(__builtin_popcount(bits));
    }
    inline void copy(uint64_t* to) const
    {
        for (uint32_t t = 0; t < n; ++t) to[t] = uint64_t{upper[t]} << 32 | lower[t];
    }
};

inline __attribute__((always_inline)) uint32_t bits_within(const float_wide& value, float limit)
{
    const float_wide limits = in_all_lanes<float_wide>(limit);
    return bits_where<wide_comparison::at_most>(value, limits) & bits_where<wide_comparison::at_most>(-value, limits);
}

/// Bits of lanes with begin <= value < end.
inline __attribute__((always_inline)) uint32_t bits_between(const float_wide& value, float begin, float end)
{
    return bits_where<wide_comparison::at_least>(value, in_all_lanes<float_wide>(begin)) &
           bits_where<wide_comparison::less>(value, in_all_lanes<float_wide>(end));
}

/// Add the hits of layer 1 from j0 on that pass the cuts with hit i of layer 0 to the pairs.
inline void add_pairs(hit_pairs& pairs, const event_hits& hits, uint32_t i, const layer_lanes& one, uint32_t j0,
                      uint32_t end, const geometric_cuts& cuts)
{
    float_wide x1, y1, z1;
    load_wide(x1, one.x + j0);
    load_wide(y1, one.y + j0);
    load_wide(z1, one.z + j0);
    const float_wide dx01 = x1 - hits.x[i], dy01 = y1 - hits.y[i], dz01 = z1 - hits.z[i];
    const float_wide square01 = dx01 * dx01 + dy01 * dy01;
    const uint32_t bits = first_bits(end - j0) & bits_within(dz01, cuts.z01) &
                          bits_where<wide_comparison::at_most>(square01, in_all_lanes<float_wide>(cuts.square_xy01));
    store_wide(pairs.i + pairs.n, in_all_lanes<uint_wide>(i));
    store_packed_wide(pairs.j + pairs.n, wide_numbers + j0, bits);
    store_packed_wide(pairs.square_xy + pairs.n, square01, bits);
    store_packed_wide(pairs.slope + pairs.n, dz01, bits);
    pairs.n += static_cast<uint32_t>(__builtin_popcount(bits));
}

/// Add the triplets of all pairs, and empty the list of pairs.
template <typename Times>
inline void add_triplets(hit_pairs& pairs, uint32_t first0, const ranges_of_hits& ranges, const layer_lanes& one,
                         const layer_lanes& two, const geometric_cuts& cuts, const Times& times, triplet_lanes& own,
                         triplet_lanes& behind)
{
    const float window = static_cast<float>(cuts.hit_window), begin = static_cast<float>(times.begin),
                end = static_cast<float>(times.end), end_behind = static_cast<float>(times.end_behind);
    pairs.make_slopes();
    for (uint32_t m = 0; m < pairs.n; ++m) {
        const uint32_t i = pairs.i[m], j = pairs.j[m];
        const float t0 = ranges.time[i - first0], t1 = one.time[j];
        const float earliest = min_of(t0, t1), latest = max_of(t0, t1), slope01 = pairs.slope[m];
        const float x1 = one.x[j], y1 = one.y[j], z1 = one.z[j];
        const hit_range near = ranges.two[i - first0];
        for (uint32_t k0 = near.begin; k0 < near.end; k0 += n_wide) {
            float_wide x2, y2, z2, t2;
            load_wide(x2, two.x + k0);
            load_wide(y2, two.y + k0);
            load_wide(z2, two.z + k0);
            load_wide(t2, two.time + k0);
            const float_wide dx12 = x2 - x1, dy12 = y2 - y1, dz12 = z2 - z1;
            const float_wide square12 = dx12 * dx12 + dy12 * dy12;
            uint32_t found =
                first_bits(near.end - k0) & bits_within(dz12, cuts.z12) &
                bits_where<wide_comparison::at_most>(square12, in_all_lanes<float_wide>(cuts.square_xy12)) &
                bits_where<wide_comparison::less>(t2, in_all_lanes<float_wide>(earliest + window)) &
                bits_where<wide_comparison::less>(in_all_lanes<float_wide>(latest - window), t2);
            if (found == 0u) continue;
            found &= bits_within(dz12 - square_root(square12) * slope01, cuts.z_residual);
            const float_wide first = t2 < earliest ? t2 : in_all_lanes<float_wide>(earliest);
            const uint_wide words = wide_numbers + (two.first + k0 + ((one.first + j) << 16));
            own.add(i, words, found & bits_between(first, begin, end));
            // Triplets are nearly in the order of time, so this branch is seldom mispredicted.
            const uint32_t later = found & bits_between(first, end, end_behind);
            if (later != 0u) behind.add(i, words, later);
        }
    }
    pairs.n = 0;
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
    hlt::triplet_lanes own, behind;
    bool crowded = false;
    if (first0 != end0) {
        const hlt::layer_lanes one(hits, 1), two(hits, 2);
        const hlt::ranges_of_hits ranges(hits, first0, end0, one, two, static_cast<float>(cuts.hit_window));
        crowded = ranges.combinations > hlt::mu3e_max_combinations;
        hlt::hit_pairs pairs;
        const float window = static_cast<float>(cuts.hit_window), begin = static_cast<float>(times.begin),
                    end_behind = static_cast<float>(times.end_behind);
        for (uint32_t i = first0; i < end0 && !crowded; ++i) {
            // The first hit of a triplet is less than a window before that of layer 0, and not behind it.
            const float t0 = ranges.time[i - first0];
            if (t0 < begin || t0 - window >= end_behind) continue;
            const hlt::hit_range near = ranges.one[i - first0];
            for (uint32_t j0 = near.begin; j0 < near.end; j0 += hlt::n_wide) {
                if (pairs.n > pairs.most - hlt::n_wide)
                    hlt::add_triplets(pairs, first0, ranges, one, two, cuts, times, own, behind);
                hlt::add_pairs(pairs, hits, i, one, j0, near.end, cuts);
            }
        }
        hlt::add_triplets(pairs, first0, ranges, one, two, cuts, times, own, behind);
    }
    const bool too_many = crowded || own.n + behind.n > hlt::mu3e_max_triplets;
    if (!too_many) {
        uint64_t* const triplets = p.mu3e_triplets.triplet + p.mu3e_triplets.first(event);
        own.copy(triplets);
        behind.copy(triplets + own.n);
    }
    p.mu3e_triplets.count[event] = too_many ? 0u : own.n + behind.n;
    p.mu3e_triplets.own[event] = too_many ? 0u : own.n;
    if (too_many) p.events.flags[event] |= hlt::too_many_triplets;
}
