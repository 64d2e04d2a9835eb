// The cluster of a row that is nearest to a predicted track (D. Rohr, diploma thesis, Heidelberg, 2010, section 2.3.4).
#pragma once

#include "alice/tpc/clusters/row_grid.cuh"
#include "alice/tpc/tracks/track_model.cuh"

namespace hlt {

/// First of two bins around a place in units of bins; 0 if there is one bin.
__device__ uint32_t first_of_two(float place, uint32_t n)
{
    const float begin = place - 0.5f, most = n > 1u ? static_cast<float>(n - 2u) : 0.f;
    return static_cast<uint32_t>(begin > 0.f ? (begin < most ? begin : most) : 0.f);
}

/// Number in its row of the cluster with the smallest chi2, at most max_chi2, in the four bins around the track;
/// tpc_no_cluster if there is none. Of equal ones the first. `crowded` is set, and none found, if the bins have more
/// than tpc_max_nearest clusters.
__device__ uint32_t nearest_cluster(const tpc_filter& filter, const tpc_state& t, const tpc_row& row,
                                    const uint32_t* places, const uint16_t* begins, float pad, float max_chi2,
                                    bool& crowded)
{
    uint32_t found = tpc_no_cluster;
    if (row.n_clusters == 0u) return found;
    const uint32_t iy =
        first_of_two((y_units(t.y) - static_cast<float>(row.y_min)) / static_cast<float>(row.y_width), row.n_y);
    const uint32_t iz =
        first_of_two((z_units(t.z) - static_cast<float>(row.z_min)) / static_cast<float>(row.z_width), row.n_z);
    const uint32_t last_y = min_of(iy + 2u, row.n_y), last_z = min_of(iz + 2u, row.n_z);
    float best = max_chi2;
    uint32_t n = 0;
    for (uint32_t line = iz; line < last_z; ++line) {
        const uint16_t* const of_line = begins + row.bin + line * row.n_y;
        const uint32_t first = of_line[iy], last = of_line[last_y];
        n += last - first;
        if (n > tpc_max_nearest) {
            crowded = true;
            return tpc_no_cluster;
        }
        for (uint32_t i = first; i < last; ++i) {
            const uint32_t place = places[row.first + i];
            const float z = z_of(place);
            const float chi2 = distance2(t, errors_at(filter, t, z, pad), y_of(place), z);
            if (chi2 < best) {
                best = chi2;
                found = i;
            }
        }
    }
    return found;
}

}  // namespace hlt
