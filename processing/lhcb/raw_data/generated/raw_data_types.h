// Written by tools/generate_device_headers.py from lhcb/raw_data/raw_data_types.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t no_bank_type = 255;
constexpr uint32_t retina_bank = 73;
constexpr uint32_t super_pixel_bank = 63;
constexpr uint32_t ut_bank_type = 66;
constexpr uint32_t scifi_bank_type = 64;

enum subdetector : uint32_t {
    odin = 0,
    velo_a = 2,
    velo_c = 3,
    rich1 = 4,
    ut_a = 5,
    ut_c = 6,
    scifi_a = 7,
    scifi_c = 8,
    rich2 = 9,
    plume = 10,
    ecal = 11,
    hcal = 12,
    muon_a = 13,
    muon_c = 14,
    tdet = 15,
};

}  // namespace hlt
