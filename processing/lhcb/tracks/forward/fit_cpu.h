// The fit of a forward candidate on the CPU (fit.cuh): rows are made for all layers at once, and the normal equations
// are summed with the unknowns in lanes.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/tracks/forward/fit.cuh"

namespace hlt {

/// The layers in vectors; lanes beyond the last layer have slopes of 0.
struct layer_lanes {
    static constexpr uint32_t n = 16;
    float dx_dy[n], dz_dy[n];

    explicit layer_lanes(const long_track_parameters& parameters)
    {
        for (uint32_t i = 0; i < n; ++i) {
            dx_dy[i] = i < n_scifi_layers ? parameters.layer_dx_dy[i] : 0.f;
            dz_dy[i] = i < n_scifi_layers ? parameters.layer_dz_dy[i] : 0.f;
        }
    }
};

/// Rows of the normal equations: by layer, and by unknown. The unknown behind the last is the residual.
struct fit_rows {
    static constexpr uint32_t n_lanes_of_row = 8;
    float of_layer[n_scifi_layers][n_lanes_of_row];
    float of_unknown[n_fitted + 1u][layer_lanes::n];

    inline __attribute__((always_inline)) fit_rows(const layer_lanes& layers, const scifi_event& hits,
                                                   const velo_line& line, const bend_at_kink& bend, float shift,
                                                   const x_candidate& candidate)
    {
        float hit_x[layer_lanes::n], hit_z[layer_lanes::n], weight_of[layer_lanes::n];
        for (uint32_t layer = 0; layer < layer_lanes::n; ++layer) {
            const uint32_t hit = layer < n_scifi_layers ? candidate.hits[layer] : no_scifi_hit;
            const bool used = hit != no_scifi_hit;
            const uint32_t place = used ? hit : 0u;
            weight_of[layer] = used ? 1.f : 0.f;
            hit_z[layer] = used ? hits.z[place] : z_scifi_reference;
            hit_x[layer] = hits.x[place];
        }
        const float lever_of_plane = bend.lever(z_scifi_reference);
        for (uint32_t base = 0; base < layer_lanes::n; base += n_wide) {
            float_wide z0, x, weight, dx_dy, dz_dy;
            load_wide(z0, hit_z + base);
            load_wide(x, hit_x + base);
            load_wide(weight, weight_of + base);
            load_wide(dx_dy, layers.dx_dy + base);
            load_wide(dz_dy, layers.dz_dy + base);
            float_wide y = line.y_at(z0) + line.ty * bend.y_change(z0) + shift;
            const float_wide z = z0 + dz_dy * y;
            y = line.y_at(z) + line.ty * bend.y_change(z) + shift;
            const float_wide lever = bend.lever(z), dz = (z - z_scifi_reference) * per_metre;
            const float_wide residual = x + dx_dy * y - (line.x_at(z) + bend.kink * lever + candidate.offset);
            store_wide(of_unknown[0] + base, weight * (lever - lever_of_plane) * per_metre);
            store_wide(of_unknown[1] + base, weight);
            store_wide(of_unknown[2] + base, -weight * dx_dy);
            store_wide(of_unknown[3] + base, -weight * dx_dy * dz);
            store_wide(of_unknown[4] + base, weight * dz * dz);
            store_wide(of_unknown[5] + base, weight > 0.f ? residual : float_wide{});
        }
        for (uint32_t layer = 0; layer < n_scifi_layers; ++layer)
            for (uint32_t i = 0; i < n_lanes_of_row; ++i)
                of_layer[layer][i] = i <= n_fitted ? of_unknown[i][layer] : 0.f;
    }

    /// Remove the hit of a layer.
    void leave_out(uint32_t layer)
    {
        for (uint32_t i = 0; i <= n_fitted; ++i) of_layer[layer][i] = of_unknown[i][layer] = 0.f;
    }
};

/// As fit_candidate of fit.cuh.
inline bool fit_candidate(const layer_lanes& layers, const scifi_event& hits, const velo_line& line,
                          const bend_at_kink& bend, const forward_hypothesis& where, const fit_errors& errors,
                          uint32_t min_hits, float shift, x_candidate& candidate, forward_fit& fit)
{
    fit_rows rows(layers, hits, line, bend, shift, candidate);
    const float lever_of_plane = bend.lever(z_scifi_reference);
    const float scatter = errors.hit_scatter * bend.kink;
    const float variance = errors.hit_variance + scatter * scatter;
    const auto weight_of = [&](float sigma) { return variance / (sigma * sigma); };
    const float shift_weight = weight_of(where.sigma_shift(bend.kink));
    const float slope_weight = weight_of(errors.slope_y(bend.kink) * 1e3f);
    const float curvature_weight = weight_of(errors.curvature(bend.kink) * 1e6f);
    float right[n_fitted];
    for (;;) {
        float8 sums[n_fitted] = {};
        for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) {
            float8 row;
            load8(row, rows.of_layer[layer]);
            for (uint32_t i = 0; i < n_fitted; ++i) sums[i] += rows.of_layer[layer][i] * row;
        }
        float matrix[n_fitted][n_fitted];
        for (uint32_t i = 0; i < n_fitted; ++i) {
            right[i] = sums[i][n_fitted];
            for (uint32_t j = 0; j <= i; ++j) matrix[i][j] = sums[i][j];
        }
        matrix[2][2] += shift_weight;
        matrix[3][3] += slope_weight;
        matrix[4][4] += curvature_weight;
        right[2] -= (shift - where.shift) * shift_weight;
        solve(matrix, right);
        float squares[layer_lanes::n];
        for (uint32_t base = 0; base < layer_lanes::n; base += n_wide) {
            float_wide left, row;
            load_wide(left, rows.of_unknown[n_fitted] + base);
            for (uint32_t i = 0; i < n_fitted; ++i) {
                load_wide(row, rows.of_unknown[i] + base);
                left -= row * right[i];
            }
            store_wide(squares + base, left * left);
        }
        float sum = 0.f, largest = errors.max_hit_chi2 * variance;
        uint32_t worst = n_scifi_layers;
        for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) {
            sum += squares[layer];
            const bool is_worse = squares[layer] > largest;
            largest = is_worse ? squares[layer] : largest;
            worst = is_worse ? layer : worst;
        }
        fit.chi2 = sum / variance;
        if (worst == n_scifi_layers) break;
        candidate.hits[worst] = no_scifi_hit;
        rows.leave_out(worst);
        if (--candidate.n_hits < min_hits) return false;
    }
    const float kink_change = right[0] * per_metre;
    fit.kink = bend.kink + kink_change;
    fit.offset = candidate.offset + right[1] - kink_change * lever_of_plane;
    fit.shift = shift + right[2];
    fit.slope_y = right[3] * 1e-3f;
    fit.curvature = right[4] * 1e-6f;
    return true;
}

}  // namespace hlt
