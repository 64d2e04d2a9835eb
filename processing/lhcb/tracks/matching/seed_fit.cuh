// The curve of a SciFi seed, its prediction of the kick in the magnet, and its fit.
#pragma once

#include "lhcb/tracks/matching/seeding_hits.cuh"

namespace hlt {

__device__ float absolute(float value) { return value < 0.f ? -value : value; }

/// x(z) = a + b D + c D^2 (1 + scifi_cubic D), D = z - z_scifi_reference; mm.
struct seed_curve {
    float a, b, c;

    __device__ static float bend(float distance) { return distance * distance * (1.f + scifi_cubic * distance); }
    __device__ float x(float distance) const { return a + b * distance + c * bend(distance); }
    __device__ float slope(float distance) const
    {
        return b + c * (2.f * distance + 3.f * scifi_cubic * distance * distance);
    }

    /// From the state at the end of the SciFi tracker.
    __device__ static seed_curve of_state(float x_end, float tx_end, float curvature)
    {
        constexpr float end = z_end_scifi - z_scifi_reference;
        const float slope = tx_end - curvature * (2.f * end + 3.f * scifi_cubic * end * end);
        return {x_end - slope * end - curvature * bend(end), slope, curvature};
    }
};

/// Effect of the magnet on a track from the collisions.
struct kick_estimate {
    float size;     // change of the slope in x
    float before;   // slope in x before
    float y_slope;  // change of the slope in y over y / z at the reference plane, minus that of y / z
};

__device__ kick_estimate kick_of(const seed_curve& curve)
{
    const float before = (curve.a + curve.b * (z_magnet - z_scifi_reference)) / z_magnet;
    const float kick = curve.b - before;
    return {kick, before, kick * (0.38f * before - 0.55f * kick)};
}

/// A seed with its hits, by layer, as numbers of seeding hits.
struct fitted_seed {
    uint32_t hits[max_scifi_track_hits];
    uint32_t n_hits;
    seed_curve curve;
    float y, ty;  // at the reference plane
    float chi2;
};

constexpr uint32_t n_seed_parameters = 5;

/// Fit of (a, b, c, y, ty) to all hits, each at the z of the track's y; starts from the current values. The unknowns
/// are corrections, with distances in m, so that single precision is sufficient.
__device__ void fit_seed(const seeding_tables& tables, const event_column<const float>& x, fitted_seed& seed)
{
    float matrix[n_seed_parameters][n_seed_parameters] = {};
    float vector[n_seed_parameters] = {};
    float chi2 = 0.f;
#pragma unroll 1
    for (uint32_t layer = 0; layer < max_scifi_track_hits; ++layer) {
        if (seed.hits[layer] == no_scifi_hit) continue;
        const float nominal = tables.layer_z[layer] - z_scifi_reference;
        const float distance = nominal + tables.dz_dy * (seed.y + seed.ty * nominal);
        const float residual =
            x[seed.hits[layer]] - seed.curve.x(distance) + tables.dx_dy[layer] * (seed.y + seed.ty * distance);
        const float metres = 1e-3f * distance;
        const float row[n_seed_parameters] = {1.f, metres, 1e-6f * seed_curve::bend(distance), -tables.dx_dy[layer],
                                              -tables.dx_dy[layer] * metres};
        // The fibres of an x layer do not measure y.
        const uint32_t n_rows = tables.dx_dy[layer] == 0.f ? 3u : n_seed_parameters;
        for (uint32_t i = 0; i < n_seed_parameters; ++i) {
            if (i >= n_rows) break;
            for (uint32_t k = 0; k <= i; ++k) matrix[i][k] += row[i] * row[k];
            vector[i] += row[i] * residual;
        }
        chi2 += residual * residual;
    }
    // Cholesky without roots: matrix = L D L^T.
    for (uint32_t i = 0; i < n_seed_parameters; ++i) {
        for (uint32_t k = 0; k < i; ++k) {
            float sum = matrix[i][k];
            for (uint32_t m = 0; m < k; ++m) sum -= matrix[i][m] * matrix[k][m] * matrix[m][m];
            matrix[i][k] = sum / matrix[k][k];
        }
        for (uint32_t m = 0; m < i; ++m) matrix[i][i] -= matrix[i][m] * matrix[i][m] * matrix[m][m];
    }
    float solution[n_seed_parameters];
    for (uint32_t i = 0; i < n_seed_parameters; ++i) {
        solution[i] = vector[i];
        for (uint32_t m = 0; m < i; ++m) solution[i] -= matrix[i][m] * solution[m];
    }
    // The fit reduces the sum of squared residuals by z^T D^-1 z, where z is the solution so far.
    for (uint32_t i = 0; i < n_seed_parameters; ++i) {
        chi2 -= solution[i] * solution[i] / matrix[i][i];
        solution[i] /= matrix[i][i];
    }
    for (uint32_t i = n_seed_parameters; i-- > 0;)
        for (uint32_t m = i + 1u; m < n_seed_parameters; ++m) solution[i] -= matrix[m][i] * solution[m];
    seed.curve.a += solution[0];
    seed.curve.b += 1e-3f * solution[1];
    seed.curve.c += 1e-6f * solution[2];
    seed.y += solution[3];
    seed.ty += 1e-3f * solution[4];
    seed.chi2 = (chi2 > 0.f ? chi2 : 0.f) / (scifi_hit_error * scifi_hit_error);
}

}  // namespace hlt
