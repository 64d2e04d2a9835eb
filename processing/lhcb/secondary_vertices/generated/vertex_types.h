// Written by tools/generate_device_headers.py from lhcb/secondary_vertices/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t max_vertex_pairs = 2048;
constexpr uint32_t max_two_track_vertices = 512;
constexpr uint32_t max_v0_pairs = 256;
constexpr uint32_t use_pv_shift = 8;

enum track_use : uint32_t {
    for_displaced = 1,
    for_v0 = 2,
    for_v0_far = 4,
    for_dimuon = 8,
    is_positive = 16,
};

enum vertex_kind : uint32_t {
    vertex_displaced = 1,
    vertex_ks = 2,
    vertex_lambda = 4,
    vertex_dimuon = 8,
    vertex_same_sign = 16,
};

}  // namespace hlt
