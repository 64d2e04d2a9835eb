// Written by tools/generate_device_headers.py from lhcb/raw_data/decode_odin.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t no_bank_type = 255;
constexpr uint32_t odin_bank_type = 16;
constexpr uint32_t odin_bank_size = 40;
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

struct odin_data {
    uint32_t run;
    uint32_t event_type;  // bit mask
    uint32_t gps_time_low;  // us
    uint32_t gps_time_high;
    uint32_t event_id_low;
    uint32_t event_id_high;
    uint32_t bunch_id;
    uint32_t crossing_type;  // 0 none, 1 beam 1, 2 beam 2, 3 both
    uint32_t orbit;
    uint32_t tae_central;  // 1: the central one of several crossings read out together
    uint32_t tae_half_window;  // number of crossings on either side
};
static_assert(sizeof(odin_data) == 44);

}  // namespace hlt
