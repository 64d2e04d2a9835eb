// The fits of forward candidates on the CPU (fit.cuh), one in each lane.
#pragma once

#include "lhcb/tracks/forward/candidates_cpu.h"
#include "lhcb/tracks/forward/fit.cuh"

namespace hlt {

/// Candidates that wait for their fits, and the fits.
struct fits_in_lanes {
    x_candidate candidates[n_wide];
    uint32_t track[n_wide];   // its lane
    uint32_t number[n_wide];  // in the list of candidates
    float shift[n_wide];      // mm, of the stereo hits
    forward_fit fits[n_wide];
    uint32_t n = 0;

    void add(const x_candidate& candidate, uint32_t of_track, uint32_t in_list, float of_hits)
    {
        candidates[n] = candidate;
        track[n] = of_track;
        number[n] = in_list;
        shift[n] = of_hits;
        ++n;
    }

    /// As fit_candidate of fit.cuh, for all. Returns those with enough hits.
    uint32_t fit(const long_track_parameters& parameters, const scifi_event& hits, const velo_tracks_in_lanes& tracks,
                 const candidate_list& list, const fit_errors& errors, uint32_t min_hits);
};

/// Rows of the normal equations; the unknown behind the last is the residual.
struct fit_rows {
    float_wide of_layer[n_scifi_layers][n_fitted + 1u];

    fit_rows(const long_track_parameters& parameters, const scifi_event& hits, const velo_line_of<float_wide>& line,
             const bend_functions<float_wide>& bend, const float_wide& lever_of_plane, const float_wide& offset,
             const float_wide& shift, const fits_in_lanes& of)
    {
        for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) {
            float hit_x[n_wide] = {}, hit_z[n_wide] = {}, weight_of[n_wide] = {};
            for (uint32_t l = 0; l < of.n; ++l) {
                const uint32_t hit = of.candidates[l].hits[layer];
                const bool used = hit != no_scifi_hit;
                const uint32_t place = used ? hit : 0u;
                weight_of[l] = used ? 1.f : 0.f;
                hit_z[l] = used ? hits.z[place] : z_scifi_reference;
                hit_x[l] = hits.x[place];
            }
            const float dx_dy = parameters.layer_dx_dy[layer], dz_dy = parameters.layer_dz_dy[layer];
            float_wide z0, x, weight;
            load_wide(z0, hit_z);
            load_wide(x, hit_x);
            load_wide(weight, weight_of);
            float_wide y = line.y_at(z0) + line.ty * bend.y_change(z0) + shift;
            const float_wide z = z0 + dz_dy * y;
            y = line.y_at(z) + line.ty * bend.y_change(z) + shift;
            const float_wide lever = bend.lever(z), dz = (z - z_scifi_reference) * per_metre;
            const float_wide residual = x + dx_dy * y - (line.x_at(z) + bend.kink * lever + offset);
            float_wide(&row)[n_fitted + 1u] = of_layer[layer];
            row[0] = weight * (lever - lever_of_plane) * per_metre;
            row[1] = weight;
            row[2] = -weight * dx_dy;
            row[3] = -weight * dx_dy * dz;
            row[4] = weight * dz * dz;
            row[n_fitted] = weight > 0.f ? residual : float_wide{};
        }
    }
};

inline uint32_t fits_in_lanes::fit(const long_track_parameters& parameters, const scifi_event& hits,
                                   const velo_tracks_in_lanes& tracks, const candidate_list& list,
                                   const fit_errors& errors, uint32_t min_hits)
{
    for (uint32_t l = n; l < n_wide; ++l) track[l] = number[l] = 0;
    const of_track_in_lane of(track);
    uint_wide numbers;
    load_wide(numbers, number);
    const auto of_list = [&](const float* column) { return floats_at(column, numbers); };
    const bend_functions<float_wide> bend{of_list(list.of_bend[0]), of_list(list.of_bend[1]), of_list(list.of_bend[2]),
                                          of_list(list.of_bend[3]), of_list(list.of_bend[4]), of_list(list.of_bend[5])};
    const float_wide offset = of_list(list.offset), expected_shift = of(tracks.where.shift);
    float_wide shift_of;
    load_wide(shift_of, shift);
    const float_wide lever_of_plane = bend.lever(float_wide{} + z_scifi_reference);
    fit_rows rows(parameters, hits, of(tracks.line), bend, lever_of_plane, offset, shift_of, *this);
    const float_wide scatter = errors.hit_scatter * bend.kink;
    const float_wide variance = errors.hit_variance + scatter * scatter;
    const auto weight_of = [&](const float_wide& sigma) -> float_wide { return variance / (sigma * sigma); };
    const float_wide shift_weight = weight_of(tracks.where.sigma_shift(bend.kink));
    const float_wide slope_weight = weight_of(errors.slope_y(bend.kink) * 1e3f);
    const float_wide curvature_weight = weight_of(errors.curvature(bend.kink) * 1e6f);
    uint32_t enough = first_bits(n);
    float_wide right[n_fitted], sum;
    for (;;) {
        float_wide matrix[n_fitted][n_fitted] = {};
        for (uint32_t i = 0; i < n_fitted; ++i) right[i] = float_wide{};
        for (const auto& row : rows.of_layer)
            for (uint32_t i = 0; i < n_fitted; ++i) {
                right[i] += row[i] * row[n_fitted];
                for (uint32_t j = 0; j <= i; ++j) matrix[i][j] += row[i] * row[j];
            }
        matrix[2][2] += shift_weight;
        matrix[3][3] += slope_weight;
        matrix[4][4] += curvature_weight;
        right[2] -= (shift_of - expected_shift) * shift_weight;
        solve(matrix, right);
        sum = float_wide{};
        float_wide largest = errors.max_hit_chi2 * variance;
        uint_wide worst = uint_wide{} + n_scifi_layers;
        for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) {
            const float_wide(&row)[n_fitted + 1u] = rows.of_layer[layer];
            float_wide left = row[n_fitted];
            for (uint32_t i = 0; i < n_fitted; ++i) left -= row[i] * right[i];
            const float_wide square = left * left;
            sum += square;
            const int_wide is_worse = square > largest;
            largest = is_worse ? square : largest;
            worst = is_worse ? uint_wide{} + layer : worst;
        }
        // The others are fitted again, with the same rows and results.
        const uint32_t with_outlier = bits_of(worst != n_scifi_layers) & enough;
        if (with_outlier == 0u) break;
        uint32_t worst_of[n_wide];
        store_wide(worst_of, worst);
        for (uint32_t these = with_outlier; these != 0u; these &= these - 1u) {
            const uint32_t l = lowest_bit(these);
            candidates[l].hits[worst_of[l]] = no_scifi_hit;
            if (--candidates[l].n_hits < min_hits) enough &= ~(1u << l);
            for (float_wide& of_row : rows.of_layer[worst_of[l]]) of_row[l] = 0.f;
        }
    }
    const float_wide kink_change = right[0] * per_metre;
    const float_wide columns[] = {bend.kink + kink_change, offset + right[1] - kink_change * lever_of_plane,
                                  shift_of + right[2],     right[3] * 1e-3f,
                                  right[4] * 1e-6f,        sum / variance};
    for (uint32_t l = 0; l < n; ++l)
        fits[l] = {columns[0][l], columns[1][l], columns[2][l], columns[3][l], columns[4][l], columns[5][l]};
    return enough;
}

}  // namespace hlt
