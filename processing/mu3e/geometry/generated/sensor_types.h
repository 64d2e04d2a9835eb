// Written by tools/generate_device_headers.py from mu3e/geometry/sensor_table.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t no_layer = 255;
constexpr uint32_t max_sensors = 4096;
constexpr uint32_t pixels_of_sensor = 250;

struct mu3e_sensor {
    float x;  // mm, of the centre
    float y;  // mm
    float z;  // mm
    float ux;  // unit vector along columns, around the axis
    float uy;
    float uz;
    float vx;  // unit vector along rows, along the axis
    float vy;
    float vz;
    float nx;  // unit vector away from the axis
    float ny;
    float nz;
    uint8_t layer;  // 0 to 3; no_layer: there is no such sensor
    uint8_t station;  // 0 in the middle, 1 upstream, 2 downstream
    uint8_t ladder;  // number in the layer, around the axis
    uint8_t place;  // number in the ladder, along z
};
static_assert(sizeof(mu3e_sensor) == 52);

}  // namespace hlt
