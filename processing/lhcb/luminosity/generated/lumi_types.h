// Written by tools/generate_device_headers.py from lhcb/luminosity/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_lumi_counters = 123;
constexpr uint32_t first_lumi_velo = 0;
constexpr uint32_t first_lumi_vertex = 10;
constexpr uint32_t first_lumi_scifi = 15;
constexpr uint32_t first_lumi_ecal = 53;
constexpr uint32_t first_lumi_muon = 61;
constexpr uint32_t first_lumi_plume = 74;
constexpr uint32_t first_lumi_state = 121;
constexpr uint32_t n_lumi_scifi_sums = 6;
constexpr float lumi_sinh2_of_2 = 13.154117f;
constexpr float lumi_sinh2_of_3 = 100.35782f;
constexpr float lumi_sinh2_of_4 = 744.73956f;
constexpr float lumi_sinh2_of_5 = 5506.1167f;
constexpr uint32_t odin_lumi_type = 8;
constexpr uint32_t plume_bank_type = 84;
constexpr uint32_t plume_version_channels = 1;
constexpr uint32_t plume_source = 20481;
constexpr uint32_t plume_bank_bytes = 104;
constexpr uint32_t plume_mask_bytes = 8;
constexpr uint32_t n_plume_channels = 64;
constexpr uint32_t n_plume_masks = 2;
constexpr uint32_t n_plume_lumi_channels = 22;
constexpr uint32_t lumi_saturated = 65536;

struct lumi_scales {
    uint32_t largest[123];  // stored number
    float shift[123];  // a stored number is shift + scale times the counted one
    float scale[123];
};
static_assert(sizeof(lumi_scales) == 1476);

}  // namespace hlt
