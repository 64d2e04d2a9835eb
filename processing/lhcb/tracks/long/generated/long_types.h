// Written by tools/generate_device_headers.py from lhcb/tracks/long/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t max_long_tracks = 1024;
constexpr uint32_t max_x_seeds = 2048;
constexpr uint32_t max_scifi_seeds = 2048;
constexpr uint32_t max_scifi_track_hits = 12;
constexpr uint32_t n_long_ut_layers = 4;
constexpr float z_end_scifi = 9410.0f;
constexpr uint32_t n_scifi_bins = 256;
constexpr uint32_t scifi_bin_stride = 272;
constexpr float scifi_bins_begin = -3276.8f;
constexpr uint32_t scifi_cells_per_bin = 32;
constexpr float scifi_cells_per_mm = 1.25f;
constexpr uint32_t scifi_cell_stride = 6152;
constexpr uint32_t first_bid_without_ut = 2147483648;
constexpr uint32_t no_bid = 4294967295;

enum track_origin : uint32_t {
    forward = 0,
    forward_no_ut = 1,
    matched = 2,
};

}  // namespace hlt
