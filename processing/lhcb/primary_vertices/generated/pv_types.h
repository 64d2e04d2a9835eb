// Written by tools/generate_device_headers.py from lhcb/primary_vertices/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t pv_lanes = 32;
constexpr uint32_t max_pv_seeds = 64;
constexpr uint32_t max_pvs = 32;

struct primary_vertex {
    float x;  // mm
    float y;
    float z;
    float c00;  // covariance in mm^2: 0 = x, 1 = y, 2 = z
    float c10;
    float c11;
    float c20;
    float c21;
    float c22;
    float n_tracks;  // sum of the weights of its tracks
};
static_assert(sizeof(primary_vertex) == 40);

}  // namespace hlt
