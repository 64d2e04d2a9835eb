// Written by tools/generate_device_headers.py from lhcb/scifi/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_scifi_layers = 12;
constexpr uint32_t n_scifi_zones = 24;
constexpr uint32_t scifi_zone_stride = 32;
constexpr uint32_t max_scifi_hits_of_event = 65535;
constexpr uint32_t scifi_hit_padding = 8;
constexpr uint32_t no_scifi_hit = 65535;

}  // namespace hlt
