// Hits of a group within a range of times, and the triplets of an event that pass the geometric selection.
#pragma once

#include "mu3e/hits/hit_banks.cuh"
#include "mu3e/tracks/generated/track_types.h"

namespace hlt {

/// Hits of an event.
struct event_hits {
    const uint64_t* word;
    const float *x, *y, *z;
    const uint32_t* begin;  // first hit of each group
};

template <typename Parameters>
__device__ __forceinline__ event_hits hits_of_event(const Parameters& p, uint32_t event)
{
    const uint32_t first = p.mu3e_hits.first(event);
    return {p.mu3e_hits.hit + first, p.mu3e_hits.x + first, p.mu3e_hits.y + first, p.mu3e_hits.z + first,
            p.mu3e_hits.group_begin + (mu3e_groups + 1u) * event};
}

/// The first hit of a group at `time` or later; negative times are before all.
__device__ uint32_t first_hit_from(const event_hits& hits, uint32_t group, int32_t time)
{
    uint32_t low = hits.begin[group], high = hits.begin[group + 1u];
    if (time <= 0) return low;
    const uint64_t key = uint64_t{group} << mu3e_group_bit | uint64_t{static_cast<uint32_t>(time)} << mu3e_time_bit;
    while (low < high) {
        const uint32_t middle = (low + high) / 2u;
        if (hits.word[middle] < key)
            low = middle + 1u;
        else
            high = middle;
    }
    return low;
}

/// Geometric cuts: distances of hits in the transverse plane and along z, mm.
struct geometric_cuts {
    float square_xy01, z01, square_xy12, z12, z_residual;
    uint32_t hit_window;
};

template <typename Parameters>
__device__ __forceinline__ geometric_cuts cuts_of(const Parameters& p)
{
    return {p.max_xy01 * p.max_xy01, p.max_z01, p.max_xy12 * p.max_xy12, p.max_z12, p.max_z_residual, p.hit_window};
}

/// The times in which candidates begin: in the sub-slice, or behind it as far as vertices need.
struct candidate_times {
    uint32_t begin, end, end_behind;
};

template <typename Parameters>
__device__ __forceinline__ candidate_times candidate_times_of(const Parameters& p)
{
    const uint32_t reach = reach_of(p);
    return {reach, reach + p.length, reach + p.length + p.time_window};
}

/// How many combinations of hits of layers 1 and 2 are within the time window of hit i of layer 0: the most that
/// for_triplets checks.
__device__ __forceinline__ uint32_t combinations_of(const event_hits& hits, uint32_t i, uint32_t hit_window)
{
    const int32_t window = static_cast<int32_t>(hit_window), time = static_cast<int32_t>(time_of_hit(hits.word[i]));
    uint32_t n = 1;
    for (uint32_t layer = 1; layer < 3u; ++layer)
        n *= first_hit_from(hits, layer, time + window) - first_hit_from(hits, layer, time - window + 1);
    return n;
}

/// Call found(middle, last, first time) for each pair of hits that makes a triplet with hit i of layer 0.
template <typename Found>
__device__ __forceinline__ void for_triplets(const event_hits& hits, uint32_t i, const geometric_cuts& cuts,
                                             const candidate_times& times, const Found& found)
{
    const int32_t window = static_cast<int32_t>(cuts.hit_window), t0 = static_cast<int32_t>(time_of_hit(hits.word[i]));
    const float x0 = hits.x[i], y0 = hits.y[i], z0 = hits.z[i];
    for (uint32_t j = first_hit_from(hits, 1u, t0 - window + 1); j < hits.begin[2]; ++j) {
        const int32_t t1 = static_cast<int32_t>(time_of_hit(hits.word[j]));
        if (t1 >= t0 + window) break;
        const float x1 = hits.x[j], y1 = hits.y[j], z1 = hits.z[j];
        const float dx01 = x1 - x0, dy01 = y1 - y0, dz01 = z1 - z0, square01 = dx01 * dx01 + dy01 * dy01;
        if (!(square01 <= cuts.square_xy01 && dz01 <= cuts.z01 && -dz01 <= cuts.z01)) continue;
        const float slope01 = dz01 / sqrtf(square01);
        const int32_t earliest = t0 < t1 ? t0 : t1, latest = t0 < t1 ? t1 : t0;
        for (uint32_t k = first_hit_from(hits, 2u, latest - window + 1); k < hits.begin[3]; ++k) {
            const int32_t t2 = static_cast<int32_t>(time_of_hit(hits.word[k]));
            if (t2 >= earliest + window) break;
            const float dx12 = hits.x[k] - x1, dy12 = hits.y[k] - y1, dz12 = hits.z[k] - z1;
            const float square12 = dx12 * dx12 + dy12 * dy12;
            if (!(square12 <= cuts.square_xy12 && dz12 <= cuts.z12 && -dz12 <= cuts.z12)) continue;
            const float residual = dz12 - slope01 * sqrtf(square12);
            if (!(residual <= cuts.z_residual && -residual <= cuts.z_residual)) continue;
            const uint32_t first = static_cast<uint32_t>(earliest < t2 ? earliest : t2);
            if (first >= times.begin && first < times.end_behind) found(j, k, first);
        }
    }
}

__device__ __forceinline__ uint64_t triplet_word(uint32_t i, uint32_t j, uint32_t k)
{
    return uint64_t{i} << 32 | j << 16 | k;
}

__device__ __forceinline__ uint32_t hit_of_triplet(uint64_t triplet, uint32_t layer)
{
    return static_cast<uint32_t>(triplet >> (32u - 16u * layer)) & 0xFFFFu;
}

}  // namespace hlt
