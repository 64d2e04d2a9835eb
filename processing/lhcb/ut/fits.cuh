// Fits of a VELO track and the UT hits behind it, in u(z) (windows.cuh).
#pragma once

#include "lhcb/ut/windows.cuh"

namespace hlt {

constexpr float z_ut_kink = 1780.f;  // where the fringe field bends all tracks at once, on average
constexpr float field_to_qop = 3.3356e-3f;  // 1/MeV for each T m

/// The hits of a continuation; a weight of 0 is no hit.
struct ut_points {
    float u[n_ut_layers];       // mm
    float z[n_ut_layers];       // mm
    float weight[n_ut_layers];  // 1/mm^2
    uint32_t n_hits;
};

/// The line u_kink + slope (z - z_ut_kink).
struct ut_line {
    float chi2;  // divided by the number of hits less one
    float u_kink;
    float slope;
};

/// The line that fits the hits and passes the VELO track at the kink.
__device__ ut_line fit_ut_kink(const ut_points& points)
{
    constexpr float slope_error = 1e-4f;
    constexpr float u_error = slope_error * (z_ut_kink - z_velo_end);
    constexpr float weight_of_velo = 1.f / (u_error * u_error);
    float sum = weight_of_velo, sum_z = 0.f, sum_zz = 0.f, sum_u = 0.f, sum_zu = 0.f;
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const float z = points.z[layer] - z_ut_kink, w = points.weight[layer];
        sum += w;
        sum_z += w * z;
        sum_zz += w * z * z;
        sum_u += w * points.u[layer];
        sum_zu += w * z * points.u[layer];
    }
    const float per_determinant = 1.f / (sum * sum_zz - sum_z * sum_z);
    ut_line line;
    line.u_kink = (sum_u * sum_zz - sum_zu * sum_z) * per_determinant;
    line.slope = (sum * sum_zu - sum_z * sum_u) * per_determinant;
    float chi2 = weight_of_velo * line.u_kink * line.u_kink;
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const float residual = line.u_kink + line.slope * (points.z[layer] - z_ut_kink) - points.u[layer];
        chi2 += points.weight[layer] * residual * residual;
    }
    line.chi2 = chi2 / static_cast<float>(points.n_hits - 1u);
    return line;
}

/// Bending power (T m) from the end of the VELO to the middle of the UT; the track comes from where it is closest to
/// the z axis.
__device__ float ut_bending_power(const ut_tables& tables, const ut_seed& seed)
{
    const float steepness = max_of(seed.tx * seed.tx + seed.ty * seed.ty, 1e-8f);
    const float origin = z_velo_end - (seed.x * seed.tx + seed.y * seed.ty) / steepness;
    constexpr float rows = static_cast<float>(n_ut_origin_bins), columns = static_cast<float>(n_ut_ty_bins);
    const float row = min_of(max_of((origin + ut_max_origin) * (rows / (2.f * ut_max_origin)), 0.f), rows);
    const float column = min_of(max_of((seed.ty + ut_max_ty) * (columns / (2.f * ut_max_ty)), 0.f), columns);
    const uint32_t i = min_of(static_cast<uint32_t>(row), n_ut_origin_bins - 1u);
    const uint32_t j = min_of(static_cast<uint32_t>(column), n_ut_ty_bins - 1u);
    const float* const near = tables.bending_power[i] + j;
    const float* const far = tables.bending_power[i + 1u] + j;
    const float in_row = row - static_cast<float>(i), in_column = column - static_cast<float>(j);
    const float lower = near[0] + in_column * (near[1] - near[0]);
    const float upper = far[0] + in_column * (far[1] - far[0]);
    return lower + in_row * (upper - lower);
}

/// What is known of a VELO-UT track.
struct ut_momentum {
    float chi2;
    float qop;     // 1/MeV
    float u_last;  // mm, of the fit at the last hit
    float slope;   // of u
};

/// q/p from the slopes before and behind the kink. Unknown are u and its slope at the middle of the UT, and how far the
/// track is off in y; the VELO track passes the kink, and its y, with the error that scattering gives a particle of
/// the momentum that `line` says.
__device__ ut_momentum fit_ut_momentum(const ut_geometry& geometry, const ut_tables& tables, const ut_seed& seed,
                                       const ut_points& points, const ut_line& line, float z_last)
{
    const float bending = ut_bending_power(tables, seed);
    const float to_qop = fabsf(bending) > 1e-8f ? tables.polarity * field_to_qop / bending : 0.f;
    const float ty2 = seed.ty * seed.ty;
    const float first_velo_slope = seed.tx + line.u_kink / (z_ut_kink - z_velo_end);
    const float first_slope = seed.tx + line.slope;
    const float first_kick = first_velo_slope * sqrtf(1.f + first_velo_slope * first_velo_slope) -
                             first_slope * sqrtf(1.f + first_slope * first_slope);
    const float per_p = max_of(fabsf(first_kick * to_qop), 1e-9f) * sqrtf(1.f + ty2);
    const float error_x = 0.14f + 1e4f * per_p, error_slope = 0.12f + 3e3f * per_p;  // mm
    const float weight_of_velo = 1.f / (error_x * error_x + error_slope * error_slope);
    const float z_kink = 2010.f + ty2 * (2240.f + ty2 * 71330.f);

    // Rows of the normal equations: u at the middle, slope for each m, offset in y.
    const float to_kink = 1e-3f * (z_kink - ut_middle_z);
    const float weight_of_y = weight_of_velo / (1.f + ty2);
    float a00 = weight_of_velo, a01 = weight_of_velo * to_kink, a11 = a01 * to_kink;
    float a02 = 0.f, a12 = 0.f, a22 = weight_of_y, b0 = 0.f, b1 = 0.f, b2 = 0.f;
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const float w = points.weight[layer], z = 1e-3f * (points.z[layer] - ut_middle_z);
        const float per_y = -geometry.dx_dy[layer], wu = w * points.u[layer];
        a00 += w;
        a01 += w * z;
        a11 += w * z * z;
        a02 += w * per_y;
        a12 += w * per_y * z;
        a22 += w * per_y * per_y;
        b0 += wu;
        b1 += wu * z;
        b2 += wu * per_y;
    }
    // Elimination without pivots: the matrix is positive definite.
    const float l1 = a01 / a00, l2 = a02 / a00;
    const float c11 = a11 - l1 * a01, c12 = a12 - l1 * a02, d1 = b1 - l1 * b0;
    const float l3 = c12 / c11;
    const float offset_y = (b2 - l2 * b0 - l3 * d1) / (a22 - l2 * a02 - l3 * c12);
    const float slope_per_m = (d1 - c12 * offset_y) / c11;
    const float u_middle = (b0 - a01 * slope_per_m - a02 * offset_y) / a00;

    const float slope = 1e-3f * slope_per_m, ut_slope = seed.tx + slope;
    const float u_kink = u_middle + slope_per_m * to_kink;
    float chi2 = weight_of_velo * u_kink * u_kink;
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const float residual = u_middle + slope * (points.z[layer] - ut_middle_z) -
                               geometry.dx_dy[layer] * offset_y - points.u[layer];
        chi2 += points.weight[layer] * residual * residual;
    }
    const float velo_slope = seed.tx + 0.5f * u_kink / (z_kink - z_velo_end);
    const float kick = velo_slope * sqrtf(1.f + velo_slope * velo_slope + ty2) -
                       ut_slope * sqrtf(1.f + ut_slope * ut_slope + ty2);
    return {chi2 / (1.f + ut_slope * ut_slope) + weight_of_y * offset_y * offset_y, kick * to_qop,
            u_middle + slope * (z_last - ut_middle_z), slope};
}

}  // namespace hlt
