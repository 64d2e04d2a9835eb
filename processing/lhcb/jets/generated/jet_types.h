// Written by tools/generate_device_headers.py from lhcb/jets/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t max_jets = 16;
constexpr uint32_t jet_pt_units = 16;
constexpr uint32_t max_jet_part_pt = 1000000;
constexpr uint32_t jet_angle_units = 65536;

}  // namespace hlt
