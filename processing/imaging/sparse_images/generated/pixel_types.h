// Written by tools/generate_device_headers.py from imaging/sparse_images/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t max_pixels = 65536;
constexpr uint32_t pixel_bytes = 4;
constexpr uint32_t pixel_list_type = 2;
constexpr uint32_t pixel_list_version = 1;

}  // namespace hlt
