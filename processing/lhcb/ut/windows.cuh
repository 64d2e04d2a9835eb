// The hits that can continue a VELO track, layer by layer.
//
// Hits are described by their distance in x from the straight line of the VELO track, at the y of that line: `u`. A
// straight line in space is one in u(z). Momentum and bending power bound |u|; a strip must reach to the y of the track.
#pragma once

#include "lhcb/raw_data/generated/raw_data_types.h"
#include "lhcb/ut/generated/ut_types.h"

namespace hlt {

constexpr uint32_t max_ut_window_hits = 24;

/// A VELO track at z_velo_end; mm and slopes.
struct ut_seed {
    float x, y, tx, ty;
};

/// The columns of hits of an event.
struct ut_hits_of_event {
    event_column<const float> x, z, y_begin, y_end, weight;
    const uint16_t* sector_offset;
};

/// The hits of a layer in the window of a track; at most max_ut_window_hits, those with the smallest |u|.
struct ut_window {
    uint32_t n_hits;
    float u[max_ut_window_hits];
    float z[max_ut_window_hits];
    uint16_t hit[max_ut_window_hits];

    /// Add a hit; a full window gives up its farthest one for a nearer one.
    __device__ void add(float new_u, float new_z, uint32_t new_hit)
    {
        uint32_t at = n_hits;
        if (n_hits < max_ut_window_hits) {
            ++n_hits;
        } else {
            at = 0;
            for (uint32_t i = 1; i < max_ut_window_hits; ++i)
                if (fabsf(u[i]) >= fabsf(u[at])) at = i;
            if (fabsf(new_u) >= fabsf(u[at])) return;
        }
        u[at] = new_u;
        z[at] = new_z;
        hit[at] = static_cast<uint16_t>(new_hit);
    }
};

/// The bin of a value in a table of `n_bins` bins from -half on.
__device__ uint32_t ut_bin(float value, float half, float width, uint32_t n_bins)
{
    const float bin = (value + half) / width;
    return static_cast<uint32_t>(min_of(max_of(bin, 0.f), static_cast<float>(n_bins - 1u)));
}

/// Collect the hits of a layer. `tolerance`: the largest |u| (mm); `per_deflection`: by how much more y is tolerated
/// for each mm of u, the y of a track of small momentum being less certain.
__device__ void fill_ut_window(const ut_geometry& geometry, const ut_hits_of_event& hits, const ut_seed& seed,
                               uint32_t layer, float tolerance, float per_deflection, ut_window& window)
{
    constexpr float margin = 0.5f;  // mm, in y
    window.n_hits = 0;
    const float dx_dy = geometry.dx_dy[layer], depth = geometry.layer_depth[layer];
    const float to_layer = geometry.layer_z[layer] - z_velo_end;
    const float x_track = seed.x + to_layer * seed.tx, y_track = seed.y + to_layer * seed.ty;
    // Sectors stand up to `depth` in front of the middle of the layer and behind it.
    const float reach_x = tolerance + depth * (fabsf(seed.tx) + fabsf(seed.ty * dx_dy));
    const float reach_y = margin + per_deflection * tolerance + depth * fabsf(seed.ty);
    const float x_low = x_track - dx_dy * y_track - reach_x, x_high = x_track - dx_dy * y_track + reach_x;
    const float y_low = y_track - reach_y, y_high = y_track + reach_y;

    const uint32_t groups_end = layer + 1u < n_ut_layers ? geometry.first_group[layer + 1u] : geometry.n_groups;
    const uint32_t y_bin = ut_bin(y_low, ut_y_half, ut_y_bin, n_ut_y_bins);
    for (uint32_t group = geometry.group_of_x[layer][ut_bin(x_low, ut_x_half, ut_x_bin, n_ut_x_bins)];
         group < groups_end && geometry.group_x[group].low <= x_high; ++group) {
        if (geometry.group_x[group].high < x_low) continue;
        const uint32_t sectors_end = geometry.first_sector[group + 1u];
        for (uint32_t sector = geometry.first_sector[group] + geometry.sector_of_y[group][y_bin];
             sector < sectors_end && geometry.sector_y[sector].low <= y_high; ++sector) {
            if (geometry.sector_y[sector].high < y_low) continue;
            const uint32_t end = hits.sector_offset[sector + 1u];
            for (uint32_t i = hits.sector_offset[sector]; i < end; ++i) {
                const float z = hits.z[i], dz = z - z_velo_end;
                const float y = seed.y + dz * seed.ty;
                const float u = hits.x[i] + dx_dy * y - (seed.x + dz * seed.tx);
                const float distance = fabsf(u);
                const float y_margin = margin + per_deflection * distance;
                if (distance <= tolerance && hits.y_begin[i] - y <= y_margin && y - hits.y_end[i] <= y_margin)
                    window.add(u, z, i);
            }
        }
    }
}

}  // namespace hlt
