// The fit of a forward candidate to all its SciFi hits, with removal of outliers, and its quality
// (docs/physics/long-tracks.md).
//
// The unknowns are the changes of kink (in mrad), x at the reference plane (mm), shift in y (mm), slope in y (mrad) and
// curvature (1e-6/mm). All numbers are of order one to a thousand, so single precision is sufficient.
#pragma once

#include "lhcb/tracks/forward/stereo_hits.cuh"

namespace hlt {

constexpr uint32_t n_fitted = 5;
constexpr float per_metre = 1e-3f;

struct fit_errors {
    float hit_variance;  // mm^2, of a hit ...
    float hit_scatter;   // ... and mm per kink, from scattering
    kink_error slope_y;
    kink_error curvature;  // 1/mm
    float max_hit_chi2;
};

/// A fitted candidate: its kink, and the deviations of the track from the parametrisation.
struct forward_fit {
    float kink;
    float offset;  // mm
    float shift;   // mm
    float slope_y;
    float curvature;  // 1/mm
    float chi2;
};

/// Solve the normal equations, lower triangle row by row, in place (Cholesky without roots).
template <typename Real>
__device__ void solve(Real (&matrix)[n_fitted][n_fitted], Real (&right)[n_fitted])
{
#pragma unroll 1
    for (uint32_t i = 0; i < n_fitted; ++i) {
        for (uint32_t j = 0; j < i; ++j) {
            Real sum = matrix[i][j];
            for (uint32_t k = 0; k < j; ++k) sum -= matrix[i][k] * matrix[j][k] * matrix[k][k];
            matrix[i][j] = sum / matrix[j][j];
        }
        for (uint32_t k = 0; k < i; ++k) {
            matrix[i][i] -= matrix[i][k] * matrix[i][k] * matrix[k][k];
            right[i] -= matrix[i][k] * right[k];
        }
    }
    for (uint32_t i = n_fitted; i-- > 0u;) {
        right[i] /= matrix[i][i];
        for (uint32_t k = i + 1u; k < n_fitted; ++k) right[i] -= matrix[k][i] * right[k];
    }
}

/// Fit a candidate and remove outliers. Returns false if too few hits are left.
__device__ bool fit_candidate(const long_track_parameters& parameters, const scifi_event& hits, const velo_line& line,
                              const bend_at_kink& bend, const forward_hypothesis& where, const fit_errors& errors,
                              uint32_t min_hits, float shift, x_candidate& candidate, forward_fit& fit)
{
    float row[n_scifi_layers][n_fitted];
    float residual[n_scifi_layers];
    const float lever_of_plane = bend.lever(z_scifi_reference);
#pragma unroll 1
    for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) {
        const uint32_t hit = candidate.hits[layer];
        const bool used = hit != no_scifi_hit;
        const float dx_dy = parameters.layer_dx_dy[layer], dz_dy = parameters.layer_dz_dy[layer];
        const float hit_z = used ? hits.z[hit] : z_scifi_reference;
        float y = line.y_at(hit_z) + line.ty * bend.y_change(hit_z) + shift;
        const float z = hit_z + dz_dy * y;
        y = line.y_at(z) + line.ty * bend.y_change(z) + shift;
        const float lever = bend.lever(z), dz = (z - z_scifi_reference) * per_metre;
        residual[layer] = used ? hits.x[hit] + dx_dy * y - (line.x_at(z) + bend.kink * lever + candidate.offset) : 0.f;
        const float weight = used ? 1.f : 0.f;
        row[layer][0] = weight * (lever - lever_of_plane) * per_metre;
        row[layer][1] = weight;
        row[layer][2] = -weight * dx_dy;
        row[layer][3] = -weight * dx_dy * dz;
        row[layer][4] = weight * dz * dz;
    }
    const float scatter = errors.hit_scatter * bend.kink;
    const float variance = errors.hit_variance + scatter * scatter;
    const auto weight_of = [&](float sigma) { return variance / (sigma * sigma); };
    const float shift_weight = weight_of(where.sigma_shift(bend.kink));
    const float slope_weight = weight_of(errors.slope_y(bend.kink) * 1e3f);
    const float curvature_weight = weight_of(errors.curvature(bend.kink) * 1e6f);
    float right[n_fitted];
    for (;;) {
        float matrix[n_fitted][n_fitted];
        for (uint32_t i = 0; i < n_fitted; ++i) {
            right[i] = 0.f;
            for (uint32_t j = 0; j <= i; ++j) matrix[i][j] = 0.f;
        }
#pragma unroll 1
        for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) {
#pragma unroll 1
            for (uint32_t i = 0; i < n_fitted; ++i) {
                right[i] += row[layer][i] * residual[layer];
                for (uint32_t j = 0; j <= i; ++j) matrix[i][j] += row[layer][i] * row[layer][j];
            }
        }
        matrix[2][2] += shift_weight;
        matrix[3][3] += slope_weight;
        matrix[4][4] += curvature_weight;
        right[2] -= (shift - where.shift) * shift_weight;
        solve(matrix, right);
        float sum = 0.f, largest = errors.max_hit_chi2 * variance;
        uint32_t worst = n_scifi_layers;
#pragma unroll 1
        for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) {
            float left = residual[layer];
            for (uint32_t i = 0; i < n_fitted; ++i) left -= row[layer][i] * right[i];
            sum += left * left;
            if (left * left > largest) {
                largest = left * left;
                worst = layer;
            }
        }
        fit.chi2 = sum / variance;
        if (worst == n_scifi_layers) break;
        candidate.hits[worst] = no_scifi_hit;
        residual[worst] = 0.f;
        for (uint32_t i = 0; i < n_fitted; ++i) row[worst][i] = 0.f;
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
