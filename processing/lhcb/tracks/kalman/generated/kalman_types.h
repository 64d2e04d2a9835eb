// Written by tools/generate_device_headers.py from lhcb/tracks/kalman/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t max_smoothed_states = 4096;

struct velo_field {
    float bend;  // x''(z) divided by q/p at z = 0, MeV/mm
    float gradient;  // its change along z, MeV/mm^2
};
static_assert(sizeof(velo_field) == 8);

struct smoothed_state {
    float x;  // mm
    float y;
    float z;
    float tx;
    float ty;
    float c00;  // covariances of (x, y, tx, ty) = (0, 1, 2, 3); x and y are independent
    float c20;
    float c22;
    float c11;
    float c31;
    float c33;
    float residual_x;  // mm, of the hit to the track without this hit
    float residual_y;
    float chi2;  // of both residuals, two degrees of freedom
    uint32_t lhcb_id;  // of the hit
    uint32_t track;  // number of the long track in its event
};
static_assert(sizeof(smoothed_state) == 64);

}  // namespace hlt
