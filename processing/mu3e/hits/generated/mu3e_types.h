// Written by tools/generate_device_headers.py from mu3e/hits/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t mu3e_subdetector = 1;
constexpr uint32_t mu3e_hits_bank = 1;
constexpr uint32_t mu3e_hits_version = 1;
constexpr uint32_t mu3e_hit_bytes = 8;
constexpr uint32_t mu3e_max_hits = 2048;
constexpr uint32_t mu3e_groups = 6;
constexpr uint32_t mu3e_recurl_groups = 2;
constexpr uint32_t mu3e_group_bit = 45;
constexpr uint32_t mu3e_time_bit = 28;

}  // namespace hlt
