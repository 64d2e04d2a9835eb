// The hits that can continue a VELO track, layer by layer.
//
// Hits are described by their distance in x from the straight line of the VELO track, at the y of that line: `u`. A
// straight line in space is one in u(z). Momentum and bending power bound |u|; a strip must reach the y of the track.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/raw_data/generated/raw_data_types.h"
#include "lhcb/ut/generated/ut_types.h"

namespace hlt {

constexpr uint32_t max_ut_window_hits = 24;
constexpr uint32_t ut_stride = ut_hit_padding;
/// A full window takes ut_stride more hits before it drops the farthest. Vectors of a CPU read and write up to twice as
/// many places behind the hits.
constexpr uint32_t ut_window_places = max_ut_window_hits + (HLT_ON_GPU ? 1u : 3u) * ut_stride;

constexpr float ut_y_margin = 0.5f;  // mm

/// A VELO track at z_velo_end; mm and slopes.
struct ut_seed {
    float x, y, tx, ty;
};

/// The columns of hits of an event.
struct ut_hits_of_event {
    event_column<const float> x, z, y_begin, y_end, weight;
    const uint16_t* sector_offset;
};

/// The hits of a layer in the window of a track; at most max_ut_window_hits, those with the smallest |u|. ut_stride
/// places without a hit follow.
struct ut_window {
    uint32_t n_hits;
    float u[ut_window_places];
    float z[ut_window_places];
    uint32_t hit[ut_window_places];

    /// Drop the farthest hits of a full window; it then takes only nearer ones.
    __device__ void limit(float& tolerance)
    {
        if (n_hits <= max_ut_window_hits) return;
        while (n_hits > max_ut_window_hits) {
            const uint32_t last = farthest();
            --n_hits;
            u[last] = u[n_hits];
            z[last] = z[n_hits];
            hit[last] = hit[n_hits];
        }
        tolerance = fabsf(u[farthest()]);
    }

    /// Places behind the last hit are far from every line.
    __device__ void close()
    {
        for (uint32_t i = 0; i < ut_stride; ++i) u[n_hits + i] = 3e38f, z[n_hits + i] = 0.f;
    }

  private:
    __device__ uint32_t farthest() const
    {
        uint32_t at = 0;
        for (uint32_t i = 1; i < n_hits; ++i)
            if (fabsf(u[i]) >= fabsf(u[at])) at = i;
        return at;
    }
};

/// Limits of the window of a track.
struct ut_window_limits {
    float dx_dy;
    float tolerance;       // mm, the largest |u|
    float margin;          // mm, largest distance of the y of the track beyond the end of a strip,
    float per_deflection;  // and more for each mm of |u|: the y of a track of small momentum is less certain
};

/// Add the hits inside the limits, among at most ut_stride hits from `begin` on. The limits become narrower when the
/// window is full.
__device__ __forceinline__ void add_ut_hits(const ut_hits_of_event& hits, const ut_seed& seed, ut_window_limits& limits,
                                            uint32_t begin, uint32_t end, ut_window& window)
{
    const uint32_t last = min_of(begin + ut_stride, end);
    for (uint32_t i = begin; i < last; ++i) {
        const float z = hits.z[i], dz = z - z_velo_end;
        const float y = seed.y + dz * seed.ty;
        const float u = hits.x[i] + limits.dx_dy * y - (seed.x + dz * seed.tx);
        const float distance = fabsf(u), margin = limits.margin + limits.per_deflection * distance;
        if (distance > limits.tolerance || hits.y_begin[i] - y > margin || y - hits.y_end[i] > margin) continue;
        window.u[window.n_hits] = u;
        window.z[window.n_hits] = z;
        window.hit[window.n_hits++] = i;
    }
    window.limit(limits.tolerance);
}

/// The bin of a value in a table of `n_bins` bins from -half on.
__device__ uint32_t ut_bin(float value, float half, float width, uint32_t n_bins)
{
    const float bin = (value + half) / width;
    return static_cast<uint32_t>(min_of(max_of(bin, 0.f), static_cast<float>(n_bins - 1u)));
}

/// Collect the hits of a layer. `tolerance`, `per_deflection`: as in ut_window_limits.
__device__ void fill_ut_window(const ut_geometry& geometry, const ut_hits_of_event& hits, const ut_seed& seed,
                               uint32_t layer, float tolerance, float per_deflection, ut_window& window)
{
    ut_window_limits limits{geometry.dx_dy[layer], tolerance, ut_y_margin, per_deflection};
    const float depth = geometry.layer_depth[layer], to_layer = geometry.layer_z[layer] - z_velo_end;
    const float x_track = seed.x + to_layer * seed.tx, y_track = seed.y + to_layer * seed.ty;
    // Sectors are up to `depth` before or behind the middle of the layer.
    const float reach_x = tolerance + depth * (fabsf(seed.tx) + fabsf(seed.ty * limits.dx_dy));
    const float reach_y = limits.margin + per_deflection * tolerance + depth * fabsf(seed.ty);
    const float x_middle = x_track - limits.dx_dy * y_track, x_high = x_middle + reach_x;

    window.n_hits = 0;
    const uint32_t groups_end = layer + 1u < n_ut_layers ? geometry.first_group[layer + 1u] : geometry.n_groups;
    const uint32_t first_y_bin = ut_bin(y_track - reach_y, ut_y_half, ut_y_bin, n_ut_y_bins);
    const uint32_t last_y_bin = ut_bin(y_track + reach_y, ut_y_half, ut_y_bin, n_ut_y_bins);
    for (uint32_t group = geometry.group_of_x[layer][ut_bin(x_middle - reach_x, ut_x_half, ut_x_bin, n_ut_x_bins)];
         group < groups_end && geometry.group_x[group].low <= x_high; ++group) {
        // Hits of sectors in one column are consecutive.
        const uint16_t* const offset = hits.sector_offset + geometry.first_sector[group];
        const uint32_t end = offset[geometry.sectors_of_y[group][last_y_bin].end];
        uint32_t i = offset[geometry.sectors_of_y[group][first_y_bin].first];
        for (; i < end; i += ut_stride) add_ut_hits(hits, seed, limits, i, end, window);
    }
    window.close();
}

}  // namespace hlt
