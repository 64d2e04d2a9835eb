// Written by tools/generate_device_headers.py from raw/banks/flags.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t missing_banks = 65536;
constexpr uint32_t no_event_number = 131072;
constexpr uint32_t unknown_type = 262144;
constexpr uint32_t large_bank = 524288;
constexpr uint32_t no_event_time = 1048576;

}  // namespace hlt
