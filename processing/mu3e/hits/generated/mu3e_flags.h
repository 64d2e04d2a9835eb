// Written by tools/generate_device_headers.py from mu3e/hits/flags.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t no_hits_bank = 65536;
constexpr uint32_t bad_hits_bank = 131072;
constexpr uint32_t time_outside = 262144;
constexpr uint32_t unknown_sensor = 524288;
constexpr uint32_t bad_column = 1048576;
constexpr uint32_t bad_row = 2097152;
constexpr uint32_t too_many_hits = 4194304;
constexpr uint32_t repeated_hits = 8388608;
constexpr uint32_t too_many_triplets = 16777216;
constexpr uint32_t too_many_tracks = 33554432;
constexpr uint32_t too_many_pairs = 67108864;
constexpr uint32_t vertices_left_out = 134217728;
constexpr uint32_t windows_joined = 268435456;
constexpr uint32_t margin = 536870912;
constexpr uint32_t no_neighbour = 1073741824;

}  // namespace hlt
