// Written by tools/generate_device_headers.py from lhcb/tracks/matching/seeding_tables.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "lhcb/tracks/long/generated/long_track_parameter_types.h"

namespace hlt {

constexpr uint32_t n_x_layers = 6;
constexpr uint32_t n_x_steps = 4;
constexpr uint32_t n_followed = 8;
constexpr uint32_t n_x_searches = 2;
constexpr float z_magnet = 5200.0f;
constexpr float scifi_cubic = -0.00028f;
constexpr float scifi_hit_error = 0.13f;

struct x_step {
    float tolerance;  // mm
    float inverse_variance;  // 1/mm^2
    float gain[8];  // for the followed numbers
};
static_assert(sizeof(x_step) == 40);

struct x_search {
    uint32_t first_layer;
    uint32_t last_layer;
    uint32_t layers[4];  // in the order of the steps
    float z;  // mm, of the first layer
    float inverse_step;  // 1/mm, of the distance in z from the first to the last layer
    float scale;  // the distance of the layers over z
    float magnet_scale;  // the distance of the layers over that from the magnet to the first layer
    float curvature;  // 1/mm for each mm of the tangent at z = 0
    float by_place[8];  // derivatives of the followed numbers, for a curve through a pair, by x in the first layer
    float by_slope[8];  // the same by the slope from first to last hit
    float by_curvature[8];  // the same by the curvature c
    x_step steps[16][4];  // [pattern of steps with a hit][step]
};
static_assert(sizeof(x_search) == 2700);

struct seeding_tables {
    float layer_z[12];  // mm at y = 0
    float dx_dy[12];
    float dz_dy;  // mean of all mats
    float polarity;  // -1 down, 1 up
    x_search searches[2];
};
static_assert(sizeof(seeding_tables) == 5504);

}  // namespace hlt
