// Windows of many VELO tracks on the CPU (windows.cuh). The first pass lists the ranges of hits that the windows of all
// tracks may take, a vector of hits each; the second pass goes over all ranges. A loop over the ranges of one window,
// two on average, would mispredict its end.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/ut/search_tracks.cuh"

namespace hlt {

static_assert(ut_stride == 8u, "partners_of_eight takes a stride");
static_assert(ut_window_places >= max_ut_window_hits + ut_stride + n_wide, "a vector fits behind a full window");

constexpr uint32_t ut_tracks_at_once = 32;

/// VELO tracks that point to the UT, and their windows.
struct ut_track_batch {
    uint32_t n = 0;
    uint32_t track[ut_tracks_at_once];
    float x[ut_tracks_at_once] = {}, y[ut_tracks_at_once] = {}, tx[ut_tracks_at_once] = {}, ty[ut_tracks_at_once] = {};
    float tolerance[n_ut_layers][ut_tracks_at_once], per_deflection[n_ut_layers][ut_tracks_at_once];
    ut_window windows[ut_tracks_at_once][n_ut_layers];
    float weights[ut_tracks_at_once][n_ut_layers][ut_window_places];  // of the hits in the windows

    ut_seed seed(uint32_t i) const { return {x[i], y[i], tx[i], ty[i]}; }
};

/// Consecutive hits, those of the first lanes in `there`; bit k is set if hit k is inside the limits.
struct ut_hit_lanes {
    float_wide u, z, weight;
    uint32_t inside;

    inline __attribute__((always_inline)) ut_hit_lanes(const ut_hits_of_event& hits, const ut_seed& seed,
                                                       const ut_window_limits& limits, uint32_t begin, uint32_t there)
    {
        float_wide x, y_begin, y_end;
        load_wide_where(x, &hits.x[begin], there);
        load_wide_where(z, &hits.z[begin], there);
        load_wide_where(y_begin, &hits.y_begin[begin], there);
        load_wide_where(y_end, &hits.y_end[begin], there);
        load_wide_where(weight, &hits.weight[begin], there);
        const float_wide dz = z - z_velo_end;
        const float_wide y = seed.y + dz * seed.ty;
        u = x + limits.dx_dy * y - (seed.x + dz * seed.tx);
        const float_wide distance = u < 0.f ? -u : u, margin = limits.margin + limits.per_deflection * distance;
        inside = there & bits_where<wide_comparison::at_most>(distance, float_wide{} + limits.tolerance) &
                 bits_where<wide_comparison::at_most>(y_begin - y, margin) &
                 bits_where<wide_comparison::at_most>(y - y_end, margin);
    }
};

/// Up to n_wide hits for a window.
struct ut_range {
    uint16_t begin, n_hits, of_track, layer;
};

/// The windows of the tracks, in bins of the geometry.
struct ut_window_bins {
    uint32_t x[ut_tracks_at_once], first_y[ut_tracks_at_once], last_y[ut_tracks_at_once];
    float x_high[ut_tracks_at_once];

    /// As fill_ut_window.
    ut_window_bins(const ut_geometry& geometry, const ut_track_batch& batch, uint32_t layer)
    {
        const float dx_dy = geometry.dx_dy[layer], depth = geometry.layer_depth[layer];
        const float to_layer = geometry.layer_z[layer] - z_velo_end;
        for (uint32_t i = 0; i < ut_tracks_at_once; ++i) {
            const float tx = batch.tx[i], ty = batch.ty[i];
            const float tolerance = batch.tolerance[layer][i];
            const float x_track = batch.x[i] + to_layer * tx, y_track = batch.y[i] + to_layer * ty;
            const float reach_x = tolerance + depth * (fabsf(tx) + fabsf(ty * dx_dy));
            const float reach_y = ut_y_margin + batch.per_deflection[layer][i] * tolerance + depth * fabsf(ty);
            const float x_middle = x_track - dx_dy * y_track;
            x_high[i] = x_middle + reach_x;
            x[i] = ut_bin(x_middle - reach_x, ut_x_half, ut_x_bin, n_ut_x_bins);
            first_y[i] = ut_bin(y_track - reach_y, ut_y_half, ut_y_bin, n_ut_y_bins);
            last_y[i] = ut_bin(y_track + reach_y, ut_y_half, ut_y_bin, n_ut_y_bins);
        }
    }
};

/// Fill the windows of a batch.
class ut_window_filler {
  public:
    ut_window_filler(const ut_geometry& geometry, const ut_hits_of_event& hits) : geometry_(geometry), hits_(hits) {}

    void fill(ut_track_batch& batch)
    {
        for (uint32_t i = 0; i < batch.n; ++i)
            for (uint32_t layer = 0; layer < n_ut_layers; ++layer) batch.windows[i][layer].n_hits = 0;
        n_ranges_ = 0;
        for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
            const ut_window_bins bins(geometry_, batch, layer);
            const uint32_t groups_end =
                layer + 1u < n_ut_layers ? geometry_.first_group[layer + 1u] : geometry_.n_groups;
            for (uint32_t i = 0; i < batch.n; ++i)
                for (uint32_t group = geometry_.group_of_x[layer][bins.x[i]];
                     group < groups_end && geometry_.group_x[group].low <= bins.x_high[i]; ++group) {
                    const ut_sector_range* const of_y = geometry_.sectors_of_y[group];
                    const uint16_t* const offset = hits_.sector_offset + geometry_.first_sector[group];
                    add_ranges(batch, offset[of_y[bins.first_y[i]].first], offset[of_y[bins.last_y[i]].end], i, layer);
                }
        }
        take_ranges(batch);
        for (uint32_t i = 0; i < batch.n; ++i)
            for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
                ut_window& window = batch.windows[i][layer];
                // The order of hits determines which hits a full window drops.
                if (window.n_hits > max_ut_window_hits) {
                    fill_ut_window(geometry_, hits_, batch.seed(i), layer, batch.tolerance[layer][i],
                                   batch.per_deflection[layer][i], window);
                    for (uint32_t k = 0; k < window.n_hits; ++k)
                        batch.weights[i][layer][k] = hits_.weight[window.hit[k]];
                } else {
                    window.close();
                }
            }
    }

  private:
    static constexpr uint32_t max_ranges_ = 1024;

    void add_ranges(ut_track_batch& batch, uint32_t begin, uint32_t end, uint32_t i, uint32_t layer)
    {
        // Two ranges in each turn, without a branch; the first or the second may be empty.
        do {
            if (n_ranges_ + 2u > max_ranges_) take_ranges(batch);
            const uint32_t middle = begin + n_wide;
            ranges_[n_ranges_] = range(begin, end, i, layer);
            n_ranges_ += begin != end ? 1u : 0u;
            ranges_[n_ranges_] = range(middle, end, i, layer);
            n_ranges_ += middle < end ? 1u : 0u;
            begin = middle + n_wide;
        } while (begin < end);
    }

    static ut_range range(uint32_t begin, uint32_t end, uint32_t i, uint32_t layer)
    {
        return {static_cast<uint16_t>(begin), static_cast<uint16_t>(min_of(end - begin, n_wide)),
                static_cast<uint16_t>(i), static_cast<uint16_t>(layer)};
    }

    /// As add_ut_hits, but a window counts more hits than it can hold, and keeps any of them.
    void take_ranges(ut_track_batch& batch)
    {
        // Copies, because compilers assume that stores of vectors may change any memory.
        const ut_hits_of_event hits = hits_;
        const uint32_t n_ranges = n_ranges_;
        for (uint32_t number = 0; number < n_ranges; ++number) {
            const ut_range range = ranges_[number];
            const uint32_t i = range.of_track, begin = range.begin;
            ut_window& window = batch.windows[i][range.layer];
            const ut_window_limits limits{geometry_.dx_dy[range.layer], batch.tolerance[range.layer][i], ut_y_margin,
                                          batch.per_deflection[range.layer][i]};
            const ut_hit_lanes at(hits, batch.seed(i), limits, begin, first_bits(range.n_hits));
            const uint32_t bits = at.inside;
            const uint32_t n = window.n_hits, to = min_of(n, max_ut_window_hits + ut_stride);
            window.n_hits = n + static_cast<uint32_t>(__builtin_popcount(bits));
            store_packed_wide(window.u + to, at.u, bits);
            store_packed_wide(window.z + to, at.z, bits);
            store_packed_wide(window.hit + to, wide_numbers + begin, bits);
            store_packed_wide(batch.weights[i][range.layer] + to, at.weight, bits);
        }
        n_ranges_ = 0;
    }

    const ut_geometry& geometry_;
    const ut_hits_of_event& hits_;
    ut_range ranges_[max_ranges_ + 1u];
    uint32_t n_ranges_ = 0;
};

}  // namespace hlt
