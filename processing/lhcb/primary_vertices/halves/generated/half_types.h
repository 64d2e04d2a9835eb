// Written by tools/generate_device_headers.py from lhcb/primary_vertices/halves/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_velo_halves = 2;
constexpr uint32_t max_half_vertices = 64;
constexpr uint32_t max_half_pairs = 32;

enum velo_half : uint32_t {
    velo_half_c = 0,
    velo_half_a = 1,
};

}  // namespace hlt
