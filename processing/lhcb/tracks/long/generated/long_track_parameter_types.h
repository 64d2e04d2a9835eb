// Written by tools/generate_device_headers.py from lhcb/tracks/long/parameters.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr float z_scifi_reference = 8520.0f;
constexpr float z_middle_of_ut = 2485.0f;
constexpr uint32_t n_bend_powers = 5;
constexpr uint32_t n_tx_powers = 2;
constexpr uint32_t n_ty_powers = 3;

struct long_track_parameters {
    float polarity;  // -1: down, +1: up
    float layer_z[12];  // mm, of the SciFi layers at y = 0
    float layer_dx_dy[12];  // slopes of their fibres
    float layer_dz_dy[12];
    float ut_z[4];  // mm, of the UT layers
    float ut_dx_dy[4];  // slopes of the strips of the UT layers
    float energy_loss;  // MeV, before the magnet
    float noise_before_ut[3];  // mm^2, mm, 1; for 1 GeV
    float noise_ut_layer[3];  // mm^2, mm, 1; for 1 GeV
    float noise_magnet[3];  // mm^2, mm, 1; for 1 GeV
    float z_magnet[5][2][3];  // mm; of kink
    float curvature[5][2][3];  // 1/mm; of kink
    float cubic[5][2][3];  // 1/mm^2; of kink
    float y_shift[5][2][3];  // mm; of kink, odd
    float y_slope[5][2][3];  // of kink, odd
    float kick[5][2][3];  // MeV; of kink
    float kick_of_momentum[5][2][3];  // MeV; of s
    float ut_z_magnet[5][2][3];  // mm; of s
    float ut_kick[5][2][3];  // MeV; of s
    float in_ut_shift[5][2][3];  // mm; of kink
    float in_ut_slope[5][2][3];  // of kink
    float in_ut_curve[5][2][3];  // 1/mm; of kink
};
static_assert(sizeof(long_track_parameters) == 1660);

}  // namespace hlt
