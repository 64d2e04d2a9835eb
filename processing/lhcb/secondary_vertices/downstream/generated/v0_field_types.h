// Written by tools/generate_device_headers.py from lhcb/secondary_vertices/downstream/field.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_bend_terms = 4;

struct v0_field {
    float bend[4][3];  // MeV/mm^(k+1), of dz^(k+2) in x(z) over q/p: [k][1, (x/z)^2, (y/z)^2 in the UT]
};
static_assert(sizeof(v0_field) == 48);

}  // namespace hlt
