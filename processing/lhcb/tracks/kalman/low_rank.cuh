// A Kalman filter of five parameters for measurements of one number (docs/physics/long-kalman-filter.md; D. H. Campora
// Perez, O. Awile, Concurrency and Computation 30 (2018) e4483).
//
// The covariance of a measurement has rank one: H is a row, so the gain needs a division in place of the inverse of a
// matrix, and the update is the outer product of one vector with itself. The state is (x, y, tx, ty, k), where k bends
// the track. `Real`: float for one track, or a vector of floats with one track in each lane. A prediction is written
// out for the few elements of F that are not 0 or 1.
#pragma once

#include "framework/device/lanes.cuh"

namespace hlt {

/// Rows and columns 0 = x, 1 = y, 2 = tx, 3 = ty, 4 = k.
template <typename Real>
struct low_rank_state {
    Real x, y, tx, ty, k;
    Real c00, c10, c11, c20, c21;
    Real c22, c30, c31, c32, c33;
    Real c40, c41, c42, c43, c44;
    Real chi2;
};

/// One coordinate of a step: position += dz slope + position_of_k k, slope += slope_of_k k; and the noise of both.
template <typename Real>
struct low_rank_bend {
    Real position_of_k;
    Real slope_of_k;
    Real noise_position, noise_both, noise_slope;
};

template <typename Real>
__device__ __forceinline__ void low_rank_predict(low_rank_state<Real>& s, const Real& dz,
                                                 const low_rank_bend<Real>& in_x, const low_rank_bend<Real>& in_y)
{
    const Real k = s.k;
    s.x += dz * s.tx + in_x.position_of_k * k;
    s.y += dz * s.ty + in_y.position_of_k * k;
    s.tx += in_x.slope_of_k * k;
    s.ty += in_y.slope_of_k * k;

    // First the slopes change with k, then the positions with the new slopes.
    const Real bx = in_x.slope_of_k, by = in_y.slope_of_k;
    const Real c44 = s.c44, c40 = s.c40, c41 = s.c41;
    const Real c42 = s.c42 + bx * c44, c43 = s.c43 + by * c44;
    const Real c20 = s.c20 + bx * c40, c21 = s.c21 + bx * c41;
    const Real c30 = s.c30 + by * c40, c31 = s.c31 + by * c41;
    const Real c22 = s.c22 + bx * (s.c42 + c42);
    const Real c33 = s.c33 + by * (s.c43 + c43);
    const Real c32 = s.c32 + bx * c43 + by * s.c42;

    const Real ax = in_x.position_of_k - dz * bx, ay = in_y.position_of_k - dz * by;
    const Real moved_c40 = c40 + dz * c42 + ax * c44, moved_c41 = c41 + dz * c43 + ay * c44;
    const Real moved_c20 = c20 + dz * c22 + ax * c42, moved_c21 = c21 + dz * c32 + ay * c42;
    const Real moved_c30 = c30 + dz * c32 + ax * c43, moved_c31 = c31 + dz * c33 + ay * c43;
    const Real c10_of_y = s.c10 + dz * c30 + ay * c40;
    s.c00 += dz * (c20 + moved_c20) + ax * (c40 + moved_c40) + in_x.noise_position;
    s.c11 += dz * (c31 + moved_c31) + ay * (c41 + moved_c41) + in_y.noise_position;
    s.c10 = c10_of_y + dz * moved_c21 + ax * moved_c41;
    s.c20 = moved_c20 + in_x.noise_both;
    s.c21 = moved_c21;
    s.c22 = c22 + in_x.noise_slope;
    s.c30 = moved_c30;
    s.c31 = moved_c31 + in_y.noise_both;
    s.c32 = c32;
    s.c33 = c33 + in_y.noise_slope;
    s.c40 = moved_c40;
    s.c41 = moved_c41;
    s.c42 = c42;
    s.c43 = c43;
}

/// Update with a measurement of x + of_y y, its variance, and its distance from the prediction; `present` is 1, or 0
/// for no change.
template <typename Real>
__device__ __forceinline__ void low_rank_update(low_rank_state<Real>& s, float of_y, const Real& variance,
                                                const Real& residual, const Real& present)
{
    const Real v0 = s.c00 + of_y * s.c10;
    const Real v1 = s.c10 + of_y * s.c11;
    const Real v2 = s.c20 + of_y * s.c21;
    const Real v3 = s.c30 + of_y * s.c31;
    const Real v4 = s.c40 + of_y * s.c41;
    const Real inverse = present / (v0 + of_y * v1 + variance);
    const Real shift = inverse * residual;
    s.chi2 += shift * residual;
    s.x += v0 * shift;
    s.y += v1 * shift;
    s.tx += v2 * shift;
    s.ty += v3 * shift;
    s.k += v4 * shift;
    const Real g0 = v0 * inverse, g1 = v1 * inverse, g2 = v2 * inverse, g3 = v3 * inverse, g4 = v4 * inverse;
    s.c00 -= g0 * v0;
    s.c10 -= g1 * v0;
    s.c11 -= g1 * v1;
    s.c20 -= g2 * v0;
    s.c21 -= g2 * v1;
    s.c22 -= g2 * v2;
    s.c30 -= g3 * v0;
    s.c31 -= g3 * v1;
    s.c32 -= g3 * v2;
    s.c33 -= g3 * v3;
    s.c40 -= g4 * v0;
    s.c41 -= g4 * v1;
    s.c42 -= g4 * v2;
    s.c43 -= g4 * v3;
    s.c44 -= g4 * v4;
}

}  // namespace hlt
