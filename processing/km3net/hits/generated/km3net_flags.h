// Written by tools/generate_device_headers.py from km3net/hits/flags.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t no_hits_bank = 65536;
constexpr uint32_t bad_hits_bank = 131072;
constexpr uint32_t time_outside = 262144;
constexpr uint32_t unknown_pmt = 524288;
constexpr uint32_t unsorted_hits = 1048576;
constexpr uint32_t too_many_hits = 2097152;
constexpr uint32_t triggers_left_out = 4194304;
constexpr uint32_t windows_joined = 8388608;
constexpr uint32_t crowded = 16777216;
constexpr uint32_t margin = 33554432;
constexpr uint32_t nothing_behind = 67108864;
constexpr uint32_t hit_moved = 134217728;

}  // namespace hlt
