// Written by tools/generate_device_headers.py from lhcb/raw_data/flags.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t global_event_cut = 32;
constexpr uint32_t too_many_clusters = 128;
constexpr uint32_t missing_detector = 256;
constexpr uint32_t many_jets = 16777216;

}  // namespace hlt
