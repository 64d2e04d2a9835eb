// Written by tools/generate_device_headers.py from lhcb/tracks/kalman/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

struct velo_field {
    float bend;  // x''(z) divided by q/p at z = 0, MeV/mm
    float gradient;  // its change along z, MeV/mm^2
};
static_assert(sizeof(velo_field) == 8);

}  // namespace hlt
