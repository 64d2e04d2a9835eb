// Written by tools/generate_device_headers.py from imaging/large_images/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_image_parts = 64;
constexpr uint32_t parts_of_group = 8;

}  // namespace hlt
