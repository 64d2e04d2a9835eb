// Written by tools/generate_device_headers.py from lhcb/long_tracks/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t max_long_tracks = 1024;
constexpr uint32_t n_seeding_bins = 128;
constexpr float seeding_bin_width = 50.0f;
constexpr uint32_t seeding_bin_stride = 3080;
constexpr uint32_t max_x_seeds = 1024;
constexpr uint32_t max_scifi_seeds = 2048;
constexpr uint32_t max_scifi_track_hits = 12;
constexpr uint32_t n_long_ut_layers = 4;
constexpr float z_end_scifi = 9410.0f;

enum track_origin : uint32_t {
    forward = 0,
    forward_no_ut = 1,
    matched = 2,
};

}  // namespace hlt
