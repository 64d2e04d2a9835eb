// Written by tools/generate_device_headers.py from lhcb/tracks/downstream/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t max_downstream_tracks = 256;

}  // namespace hlt
