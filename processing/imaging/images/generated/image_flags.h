// Written by tools/generate_device_headers.py from imaging/images/flags.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t no_image = 65536;
constexpr uint32_t bad_strip = 131072;
constexpr uint32_t strip_mismatch = 262144;
constexpr uint32_t missing_rows = 524288;
constexpr uint32_t overlapping_strips = 1048576;
constexpr uint32_t image_too_large = 2097152;
constexpr uint32_t too_many_components = 4194304;
constexpr uint32_t missing_pixels = 8388608;
constexpr uint32_t bad_pixels = 16777216;
constexpr uint32_t too_many_pixels = 33554432;

}  // namespace hlt
