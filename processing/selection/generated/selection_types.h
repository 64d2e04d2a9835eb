// Written by tools/generate_device_headers.py from selection/line.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

struct line_scaler {
    uint32_t seed;  // hash of the line's name and _pre or _post
    uint32_t limit;  // passes if the hash of the event is below
    uint32_t always;  // 1: scale 1
};
static_assert(sizeof(line_scaler) == 12);

struct line_record {
    uint32_t kind;  // number of the line type, 0 for an unused place
    line_scaler prescale;
    line_scaler postscale;
    uint32_t parameters[8];  // floats stand as their bits
};
static_assert(sizeof(line_record) == 60);

}  // namespace hlt
