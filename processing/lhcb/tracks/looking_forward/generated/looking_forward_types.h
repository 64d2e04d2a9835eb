// Written by tools/generate_device_headers.py from lhcb/tracks/looking_forward/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_scifi_x_layers = 6;
constexpr uint32_t max_x_hits_of_layer = 32;
constexpr uint32_t max_hit_triplets = 32;
constexpr uint32_t max_x_tracks = 2;
constexpr uint32_t triplet_tile = 16;
constexpr uint32_t max_x_hits_tried = 256;

}  // namespace hlt
