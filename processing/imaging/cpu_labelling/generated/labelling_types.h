// Written by tools/generate_device_headers.py from imaging/cpu_labelling/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t method_rosenfeld = 0;
constexpr uint32_t method_rosenfeld_dt = 1;
constexpr uint32_t method_lsl_std = 2;
constexpr uint32_t method_lsl_rle = 3;
constexpr uint32_t method_flood_fill = 4;
constexpr uint32_t method_simd_v1_128 = 5;
constexpr uint32_t method_simd_v1_256 = 6;
constexpr uint32_t method_simd_v1_512 = 7;
constexpr uint32_t method_simd_v2_128 = 8;
constexpr uint32_t method_simd_v2_256 = 9;
constexpr uint32_t method_simd_v2_512 = 10;

}  // namespace hlt
