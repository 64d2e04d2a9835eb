// The foreground of a row of an image as masks of 32 pixels, and its runs.
#pragma once

#include "framework/device/platform.cuh"
#include "imaging/components/generated/component_types.h"
#include "imaging/images/generated/image_types.h"

namespace hlt {

/// Bit i of the mask is set if pixel 32 * word + i of a row is foreground: a set bit, or a byte of at least
/// `threshold`.
__device__ uint32_t foreground_mask(const uint8_t* row, const image_shape& shape, uint32_t threshold, uint32_t word)
{
    const uint32_t left = shape.width - 32u * word;
    uint32_t mask = 0;
    if (shape.bits == 1u) {
        mask = load_u32(row + 4u * word);
    } else {
        const uint32_t n_quads = (min_of(left, 32u) + 3u) / 4u;
        for (uint32_t quad = 0; quad < n_quads; ++quad) {
            const uint32_t pixels = load_u32(row + 32u * word + 4u * quad);
            for (uint32_t i = 0; i < 4u; ++i)
                mask |= ((pixels >> 8u * i & 0xffu) >= threshold ? 1u : 0u) << (4u * quad + i);
        }
    }
    return left < 32u ? mask & ((1u << left) - 1u) : mask;
}

/// Runs of foreground pixels in a row.
__device__ uint32_t count_runs(const uint8_t* row, const image_shape& shape, uint32_t threshold)
{
    uint32_t n = 0, last = 0;
    for (uint32_t word = 0; 32u * word < shape.width; ++word) {
        const uint32_t mask = foreground_mask(row, shape, threshold, word);
        n += static_cast<uint32_t>(__popc(mask & ~(mask << 1 | last)));
        last = mask >> 31;
    }
    return n;
}

/// Write the runs of a row from left to right; there is room for all of count_runs.
__device__ void write_runs(const uint8_t* row, const image_shape& shape, uint32_t threshold, image_run* runs)
{
    uint32_t last = 0, begin = 0;
    for (uint32_t word = 0; 32u * word < shape.width; ++word) {
        const uint32_t mask = foreground_mask(row, shape, threshold, word);
        // Bits at which a pixel differs from its left neighbour: runs begin and end there in turn.
        uint32_t edges = mask ^ (mask << 1 | last);
        while (edges != 0u) {
            const uint32_t x = 32u * word + static_cast<uint32_t>(__ffs(static_cast<int>(edges))) - 1u;
            edges &= edges - 1u;
            if (last == 0u) {
                begin = x;
            } else {
                *runs++ = {static_cast<uint16_t>(begin), static_cast<uint16_t>(x)};
            }
            last ^= 1u;
        }
    }
    if (last != 0u) *runs = {static_cast<uint16_t>(begin), static_cast<uint16_t>(shape.width)};
}

}  // namespace hlt
