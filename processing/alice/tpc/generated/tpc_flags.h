// Written by tools/generate_device_headers.py from alice/tpc/flags.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t no_tpc = 65536;
constexpr uint32_t bad_tpc_bank = 131072;
constexpr uint32_t bad_cluster = 262144;
constexpr uint32_t row_too_full = 524288;
constexpr uint32_t too_many_tracklets = 1048576;
constexpr uint32_t too_many_slice_tracks = 2097152;
constexpr uint32_t crowded_clusters = 4194304;
constexpr uint32_t long_chain = 8388608;
constexpr uint32_t many_jets = 16777216;
constexpr uint32_t crowded_v0s = 33554432;
constexpr uint32_t many_v0s = 67108864;
constexpr uint32_t crowded_ends = 134217728;

}  // namespace hlt
