// Written by tools/generate_device_headers.py from imaging/components/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

struct image_run {
    uint16_t begin;  // column of the first pixel
    uint16_t end;  // column behind the last pixel
};
static_assert(sizeof(image_run) == 4);

struct component_box {
    uint32_t left;  // first column
    uint32_t top;  // first row
    uint32_t right;  // last column
    uint32_t bottom;  // last row
};
static_assert(sizeof(component_box) == 16);

struct row_runs {
    uint32_t first;  // number of its first run in the event
    uint32_t count;
};
static_assert(sizeof(row_runs) == 8);

}  // namespace hlt
