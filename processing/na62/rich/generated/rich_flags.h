// Written by tools/generate_device_headers.py from na62/rich/flags.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t no_rich = 65536;
constexpr uint32_t bad_rich_bank = 131072;
constexpr uint32_t too_many_rich_hits = 262144;
constexpr uint32_t bad_pmt = 524288;
constexpr uint32_t no_circle = 1048576;
constexpr uint32_t too_many_rings = 2097152;

}  // namespace hlt
