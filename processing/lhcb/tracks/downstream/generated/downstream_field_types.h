// Written by tools/generate_device_headers.py from lhcb/tracks/downstream/field.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr float z_downstream_ut = 2642.0f;

struct downstream_field {
    float polarity;  // -1: down, +1: up
    float ut_curve;  // 1/mm, over the kink: quadratic term of x(z) in the UT
    float ut_dx_dy[4];  // slopes of the strips of the UT layers
    float z_magnet[5][2][3];  // mm, of kink
    float kick[5][2][3];  // MeV, of kink
    float y_shift[5][2][3];  // mm, of kink, odd
    float y_slope[5][2][3];  // 1, of kink, odd
};
static_assert(sizeof(downstream_field) == 504);

}  // namespace hlt
