// Written by tools/generate_device_headers.py from algorithms/decode_odin.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t odin_subdetector = 0;
constexpr uint32_t odin_bank_type = 16;
constexpr uint32_t odin_bank_size = 40;

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
