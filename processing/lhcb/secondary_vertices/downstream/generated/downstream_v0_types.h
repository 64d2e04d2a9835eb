// Written by tools/generate_device_headers.py from lhcb/secondary_vertices/downstream/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t max_downstream_v0s = 128;

enum downstream_v0_kind : uint32_t {
    downstream_ks = 1,
    downstream_lambda = 2,
    downstream_photon = 4,
};

}  // namespace hlt
