// Fits of a VELO track and the UT hits behind it, in u(z) (windows.cuh).
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/ut/windows.cuh"

namespace hlt {

constexpr float z_ut_kink = 1780.f;         // mean z of the bend of all tracks in the fringe field
constexpr float field_to_qop = 3.3356e-3f;  // 1/MeV for each T m

/// The hits of one continuation, or of several; a missing hit has weight 0. `Real`: float, or a vector of floats.
template <typename Real>
struct ut_points_of {
    Real u[n_ut_layers];       // mm
    Real z[n_ut_layers];       // mm
    Real weight[n_ut_layers];  // 1/mm^2
    Real n_hits;
};
using ut_points = ut_points_of<float>;

/// The line u_kink + slope (z - z_ut_kink).
template <typename Real>
struct ut_line_of {
    Real chi2;  // divided by the number of hits minus one
    Real u_kink;
    Real slope;
};
using ut_line = ut_line_of<float>;

/// The line that fits the hits and passes the VELO track at the kink.
template <typename Real>
__device__ __forceinline__ ut_line_of<Real> fit_ut_kink(const ut_points_of<Real>& points)
{
    constexpr float slope_error = 1e-4f;
    constexpr float u_error = slope_error * (z_ut_kink - z_velo_end);
    constexpr float weight_of_velo = 1.f / (u_error * u_error);
    Real sum = Real{} + weight_of_velo, sum_z{}, sum_zz{}, sum_u{}, sum_zu{};
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const Real z = points.z[layer] - z_ut_kink, w = points.weight[layer];
        sum += w;
        sum_z += w * z;
        sum_zz += w * z * z;
        sum_u += w * points.u[layer];
        sum_zu += w * z * points.u[layer];
    }
    const Real per_determinant = 1.f / (sum * sum_zz - sum_z * sum_z);
    ut_line_of<Real> line;
    line.u_kink = (sum_u * sum_zz - sum_zu * sum_z) * per_determinant;
    line.slope = (sum * sum_zu - sum_z * sum_u) * per_determinant;
    Real chi2 = weight_of_velo * line.u_kink * line.u_kink;
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const Real residual = line.u_kink + line.slope * (points.z[layer] - z_ut_kink) - points.u[layer];
        chi2 += points.weight[layer] * residual * residual;
    }
    line.chi2 = chi2 / (points.n_hits - 1.f);
    return line;
}

/// Bending power (T m) from the end of the VELO to the middle of the UT, for a track whose origin is its closest
/// approach to the z axis.
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

/// q/p (1/MeV) for a change of the sine of the angle to the z axis, in the plane of x and z.
__device__ float ut_to_qop(const ut_tables& tables, const ut_seed& seed)
{
    const float bending = ut_bending_power(tables, seed);
    return fabsf(bending) > 1e-8f ? tables.polarity * field_to_qop / bending : 0.f;
}

/// The fitted parameters of a VELO-UT track.
template <typename Real>
struct ut_momentum_of {
    Real chi2;
    Real qop;     // 1/MeV
    Real u_last;  // mm, of the fit at the last hit
    Real slope;   // of u
};
using ut_momentum = ut_momentum_of<float>;

/// q/p from the slopes before and behind the kink. The fit has three parameters: u and its slope at the middle of the
/// UT, and the offset in y. The VELO track constrains the kink and y, with the error from multiple scattering at the
/// momentum of `line`. `tx`, `ty`: slopes of the VELO track. `to_qop`: see ut_to_qop.
template <typename Real>
__device__ __forceinline__ ut_momentum_of<Real> fit_ut_momentum(const ut_geometry& geometry, const Real& to_qop,
                                                                const Real& tx, const Real& ty,
                                                                const ut_points_of<Real>& points,
                                                                const ut_line_of<Real>& line, const Real& z_last)
{
    const Real ty2 = ty * ty;
    const Real first_velo_slope = tx + line.u_kink / (z_ut_kink - z_velo_end);
    const Real first_slope = tx + line.slope;
    const Real first_kick = first_velo_slope * square_root(1.f + first_velo_slope * first_velo_slope) -
                            first_slope * square_root(1.f + first_slope * first_slope);
    const Real per_p = max_of(absolute(first_kick * to_qop), Real{} + 1e-9f) * square_root(1.f + ty2);
    const Real error_x = 0.14f + 1e4f * per_p, error_slope = 0.12f + 3e3f * per_p;  // mm
    const Real weight_of_velo = 1.f / (error_x * error_x + error_slope * error_slope);
    const Real z_kink = 2010.f + ty2 * (2240.f + ty2 * 71330.f);

    // Rows of the normal equations: u at the middle, slope for each m, offset in y.
    const Real to_kink = 1e-3f * (z_kink - ut_middle_z);
    const Real weight_of_y = weight_of_velo / (1.f + ty2);
    Real a00 = weight_of_velo, a01 = weight_of_velo * to_kink, a11 = a01 * to_kink;
    Real a02{}, a12{}, a22 = weight_of_y, b0{}, b1{}, b2{};
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const Real w = points.weight[layer], z = 1e-3f * (points.z[layer] - ut_middle_z);
        const float per_y = -geometry.dx_dy[layer];
        const Real wu = w * points.u[layer];
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
    const Real l1 = a01 / a00, l2 = a02 / a00;
    const Real c11 = a11 - l1 * a01, c12 = a12 - l1 * a02, d1 = b1 - l1 * b0;
    const Real l3 = c12 / c11;
    const Real offset_y = (b2 - l2 * b0 - l3 * d1) / (a22 - l2 * a02 - l3 * c12);
    const Real slope_per_m = (d1 - c12 * offset_y) / c11;
    const Real u_middle = (b0 - a01 * slope_per_m - a02 * offset_y) / a00;

    const Real slope = 1e-3f * slope_per_m, ut_slope = tx + slope;
    const Real u_kink = u_middle + slope_per_m * to_kink;
    Real chi2 = weight_of_velo * u_kink * u_kink;
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const Real residual =
            u_middle + slope * (points.z[layer] - ut_middle_z) - geometry.dx_dy[layer] * offset_y - points.u[layer];
        chi2 += points.weight[layer] * residual * residual;
    }
    const Real velo_slope = tx + 0.5f * u_kink / (z_kink - z_velo_end);
    const Real kick = velo_slope * square_root(1.f + velo_slope * velo_slope + ty2) -
                      ut_slope * square_root(1.f + ut_slope * ut_slope + ty2);
    return {chi2 / (1.f + ut_slope * ut_slope) + weight_of_y * offset_y * offset_y, kick * to_qop,
            u_middle + slope * (z_last - ut_middle_z), slope};
}

}  // namespace hlt
