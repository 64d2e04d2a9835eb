// Written by tools/generate_device_headers.py from imaging/gpu_labelling/collections.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t max_label_pixels = 268451840;
constexpr uint32_t max_label_chunks = 8404992;

struct edge_chunk {
    uint32_t edges;  // bit i: pixel i differs from its left neighbour
    uint32_t before;  // edges of the row left of the chunk
};
static_assert(sizeof(edge_chunk) == 8);

struct label_features {
    uint64_t sum_x;  // of the columns of the pixels
    uint64_t sum_y;  // of their rows
    uint32_t area;  // pixels
    uint32_t left;  // first column
    uint32_t right;  // last column
    uint32_t bottom;  // last row
};
static_assert(sizeof(label_features) == 32);

}  // namespace hlt
