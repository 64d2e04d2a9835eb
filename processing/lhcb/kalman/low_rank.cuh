// A Kalman filter of five parameters for measurements of one number (docs/physics/long-kalman-filter.md; D. H. Campora
// Perez, O. Awile, Concurrency and Computation 30 (2018) e4483).
//
// The covariance of a measurement has rank one: H is a row, so the gain needs a division in place of the inverse of a
// matrix, and the update is the outer product of one vector with itself. The state is (x, y, tx, ty, k), k being what
// bends the track, and is kept as arrays of `kalman_width` tracks: a lane of a vector register takes a track, on a GPU
// a thread. A prediction is written out for the few elements of F that are not 0 or 1.
#pragma once

#include "lhcb/velo/tracking/track_hits.cuh"

namespace hlt {

/// Rows and columns 0 = x, 1 = y, 2 = tx, 3 = ty, 4 = k.
struct low_rank_states {
    float x[kalman_width], y[kalman_width], tx[kalman_width], ty[kalman_width], k[kalman_width];
    float c00[kalman_width], c10[kalman_width], c11[kalman_width], c20[kalman_width], c21[kalman_width];
    float c22[kalman_width], c30[kalman_width], c31[kalman_width], c32[kalman_width], c33[kalman_width];
    float c40[kalman_width], c41[kalman_width], c42[kalman_width], c43[kalman_width], c44[kalman_width];
    float chi2[kalman_width];
};

/// One coordinate of a step: position += dz slope + position_of_k k, slope += slope_of_k k; and the noise of both.
struct low_rank_bend {
    float position_of_k;
    float slope_of_k;
    float noise_position, noise_both, noise_slope;
};

__device__ __forceinline__ void low_rank_predict(low_rank_states& s, uint32_t i, float dz, const low_rank_bend& in_x,
                                                 const low_rank_bend& in_y)
{
    const float k = s.k[i];
    s.x[i] += dz * s.tx[i] + in_x.position_of_k * k;
    s.y[i] += dz * s.ty[i] + in_y.position_of_k * k;
    s.tx[i] += in_x.slope_of_k * k;
    s.ty[i] += in_y.slope_of_k * k;

    // First the slopes change with k, then the positions with the new slopes.
    const float bx = in_x.slope_of_k, by = in_y.slope_of_k;
    const float c44 = s.c44[i], c40 = s.c40[i], c41 = s.c41[i];
    const float c42 = s.c42[i] + bx * c44, c43 = s.c43[i] + by * c44;
    const float c20 = s.c20[i] + bx * c40, c21 = s.c21[i] + bx * c41;
    const float c30 = s.c30[i] + by * c40, c31 = s.c31[i] + by * c41;
    const float c22 = s.c22[i] + bx * (s.c42[i] + c42);
    const float c33 = s.c33[i] + by * (s.c43[i] + c43);
    const float c32 = s.c32[i] + bx * c43 + by * s.c42[i];

    const float ax = in_x.position_of_k - dz * bx, ay = in_y.position_of_k - dz * by;
    const float moved_c40 = c40 + dz * c42 + ax * c44, moved_c41 = c41 + dz * c43 + ay * c44;
    const float moved_c20 = c20 + dz * c22 + ax * c42, moved_c21 = c21 + dz * c32 + ay * c42;
    const float moved_c30 = c30 + dz * c32 + ax * c43, moved_c31 = c31 + dz * c33 + ay * c43;
    const float c10_of_y = s.c10[i] + dz * c30 + ay * c40;
    s.c00[i] += dz * (c20 + moved_c20) + ax * (c40 + moved_c40) + in_x.noise_position;
    s.c11[i] += dz * (c31 + moved_c31) + ay * (c41 + moved_c41) + in_y.noise_position;
    s.c10[i] = c10_of_y + dz * moved_c21 + ax * moved_c41;
    s.c20[i] = moved_c20 + in_x.noise_both;
    s.c21[i] = moved_c21;
    s.c22[i] = c22 + in_x.noise_slope;
    s.c30[i] = moved_c30;
    s.c31[i] = moved_c31 + in_y.noise_both;
    s.c32[i] = c32;
    s.c33[i] = c33 + in_y.noise_slope;
    s.c40[i] = moved_c40;
    s.c41[i] = moved_c41;
    s.c42[i] = c42;
    s.c43[i] = c43;
}

/// Update with a measurement of x + of_y y, its variance, and its distance from the prediction; with `present` 0 in
/// place of 1 nothing changes.
__device__ __forceinline__ void low_rank_update(low_rank_states& s, uint32_t i, float of_y, float variance,
                                                float residual, float present)
{
    const float v0 = s.c00[i] + of_y * s.c10[i];
    const float v1 = s.c10[i] + of_y * s.c11[i];
    const float v2 = s.c20[i] + of_y * s.c21[i];
    const float v3 = s.c30[i] + of_y * s.c31[i];
    const float v4 = s.c40[i] + of_y * s.c41[i];
    const float inverse = present / (v0 + of_y * v1 + variance);
    const float shift = inverse * residual;
    s.chi2[i] += shift * residual;
    s.x[i] += v0 * shift;
    s.y[i] += v1 * shift;
    s.tx[i] += v2 * shift;
    s.ty[i] += v3 * shift;
    s.k[i] += v4 * shift;
    const float g0 = v0 * inverse, g1 = v1 * inverse, g2 = v2 * inverse, g3 = v3 * inverse, g4 = v4 * inverse;
    s.c00[i] -= g0 * v0;
    s.c10[i] -= g1 * v0;
    s.c11[i] -= g1 * v1;
    s.c20[i] -= g2 * v0;
    s.c21[i] -= g2 * v1;
    s.c22[i] -= g2 * v2;
    s.c30[i] -= g3 * v0;
    s.c31[i] -= g3 * v1;
    s.c32[i] -= g3 * v2;
    s.c33[i] -= g3 * v3;
    s.c40[i] -= g4 * v0;
    s.c41[i] -= g4 * v1;
    s.c42[i] -= g4 * v2;
    s.c43[i] -= g4 * v3;
    s.c44[i] -= g4 * v4;
}

}  // namespace hlt
