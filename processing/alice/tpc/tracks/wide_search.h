// The search of search_cluster.cuh with a track in each lane; all tracks are at the same row.
#pragma once

#include "alice/tpc/clusters/wide_places.h"
#include "alice/tpc/tracks/search_cluster.cuh"

namespace hlt {

using wide_state = tpc_state_of<float_wide>;

inline __attribute__((always_inline)) uint_wide first_of_two(const float_wide& place, uint32_t n)
{
    const float_wide begin = place - 0.5f, most = in_all_lanes<float_wide>(n > 1u ? static_cast<float>(n - 2u) : 0.f);
    return truncated(begin > 0.f ? (begin < most ? begin : most) : float_wide{});
}

/// The nearest cluster of each lane: its number, its place, and the lanes that have one.
struct wide_nearest {
    uint_wide number, place;
    int_wide found;
};

/// Clusters of the four bins around each track: `n_first` from `first` on, then those from `to_second + n_first` on.
struct wide_range {
    uint_wide first, n_first, to_second, total;
    uint32_t most;  // of any lane
};

/// The clusters around the tracks of `wanted`, in a row that has some; none if they are too many.
inline __attribute__((always_inline)) wide_range clusters_around(const int_wide& wanted, const wide_state& t,
                                                                 const tpc_row& row, const uint16_t* begins,
                                                                 bool& crowded)
{
    const uint_wide iy =
        first_of_two((y_units(t.y) - static_cast<float>(row.y_min)) / static_cast<float>(row.y_width), row.n_y);
    const uint_wide iz =
        first_of_two((z_units(t.z) - static_cast<float>(row.z_min)) / static_cast<float>(row.z_width), row.n_z);
    // The first line of bins, and the second one if there is one. A last bin is read with the number before it.
    const uint16_t* const of_row = begins + row.bin;
    const uint_wide last_y = min_lanes(iy + 2u, row.n_y) - 1u;
    const uint_wide line = iz * row.n_y, other = line + row.n_y;
    const uint_wide first = pairs_of(of_row, line + iy) & 0xFFFFu;
    const uint_wide n_first = (uint_wide)wanted & ((pairs_of(of_row, line + last_y) >> 16) - first);
    uint_wide second{}, total = n_first;
    if (row.n_z > 1u) {
        second = pairs_of(of_row, other + iy) & 0xFFFFu;
        total += (uint_wide)wanted & ((pairs_of(of_row, other + last_y) >> 16) - second);
    }
    const int_wide too_many = total > tpc_max_nearest;
    if (bits_of(too_many) != 0u) {
        crowded = true;
        total &= (uint_wide)~too_many;
    }
    return {first, n_first, second - n_first, total, highest_lane(total)};
}

/// nearest_cluster among these.
inline __attribute__((always_inline)) wide_nearest nearest_of(const wide_range& range, const tpc_filter& filter,
                                                              const wide_state& t, const tpc_row& row,
                                                              const uint32_t* places, float pad, float max_chi2)
{
    wide_nearest nearest;
    nearest.number = nearest.place = uint_wide{};
    nearest.found = int_wide{};
    const uint32_t* const of_clusters = places + row.first;
    const float_wide over_c2 = 1.f / (1.f - t.s * t.s), tangent2 = pad * over_c2;
    const float_wide of_angle_y = filter.y_angle * t.s * t.s * tangent2,
                     of_angle_z = filter.z_angle * t.l * t.l * tangent2;
    float_wide best = in_all_lanes<float_wide>(max_chi2);
    for (uint32_t k = 0; k < range.most; ++k) {
        const int_wide is_there = range.total > k;
        uint_wide number = k + (range.n_first > k ? range.first : range.to_second);
        number &= (uint_wide)is_there;
        const uint_wide place = words_of<4>(of_clusters, number);
        const float_wide y = y_of(place), z = z_of(place);
        const float_wide drift = z < filter.half_length ? (filter.half_length - z) / pad : float_wide{};
        const float_wide error_y = filter.y_constant + filter.y_drift * drift + of_angle_y;
        const float_wide error_z = filter.z_constant + filter.z_drift * drift + of_angle_z;
        const float_wide dy = y - t.y, dz = z - t.z;
        const float_wide chi2 = dy * dy / (error_y + t.yy) + dz * dz / (error_z + t.zz);
        const int_wide better = is_there & (chi2 < best);
        best = better ? chi2 : best;
        nearest.number = better ? number : nearest.number;
        nearest.place = better ? place : nearest.place;
        nearest.found |= better;
    }
    return nearest;
}

}  // namespace hlt
