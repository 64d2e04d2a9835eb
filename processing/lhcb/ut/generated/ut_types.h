// Written by tools/generate_device_headers.py from lhcb/ut/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_ut_layers = 4;
constexpr uint32_t max_ut_groups = 127;
constexpr uint32_t ut_group_stride = 128;
constexpr uint32_t max_ut_hits_of_event = 65535;
constexpr uint32_t ut_hit_padding = 8;
constexpr uint32_t max_ut_tracks = 1024;
constexpr uint32_t no_ut_hit = 65535;
constexpr uint32_t no_ut_track = 65535;

}  // namespace hlt
