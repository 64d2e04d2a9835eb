// Written by tools/generate_device_headers.py from imaging/images/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t first_image_subdetector = 1;
constexpr uint32_t n_image_subdetectors = 4;
constexpr uint32_t strip_type = 1;
constexpr uint32_t strip_version = 1;
constexpr uint32_t image_header_bytes = 8;
constexpr uint32_t max_side = 16384;

struct image_shape {
    uint32_t width;  // pixels; 0 for an event without a usable strip
    uint32_t height;  // pixels, as announced
    uint32_t bits;  // of a pixel, 1 or 8
    uint32_t delivered;  // sum of the rows of all usable strips, those of overlapping strips twice
};
static_assert(sizeof(image_shape) == 16);

}  // namespace hlt
