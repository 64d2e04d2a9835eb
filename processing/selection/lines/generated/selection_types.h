// Written by tools/generate_device_headers.py from selection/lines/line.py. Do not edit.
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
    line_scaler prescale;
    line_scaler postscale;
};
static_assert(sizeof(line_record) == 24);

}  // namespace hlt
