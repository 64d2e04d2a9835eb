// What a run adds to the features of its component (A. Hennequin, Performance optimization for the LHCb experiment, PhD
// thesis, Sorbonne Universite, 2022, section 4.3, algorithm 11).
#pragma once

#include "framework/device/platform.cuh"
#include "imaging/components/generated/component_types.h"

namespace hlt {

/// Sums over the pixels of a run. An image has at most 2^14 columns and rows, so the first four fit in 32 bits.
struct run_features {
    uint32_t area, sum_x, sum_y, intensity;
    uint64_t weighted_x, weighted_y;
};

/// The sums of a run in row y, whose pixels begin at `row`. Only pixels of 8 bits are read: one of 1 bit is 1.
__device__ run_features features_of_run(const image_run& span, uint32_t y, const uint8_t* row, uint32_t bits)
{
    const uint32_t begin = span.begin, end = span.end, area = end - begin;
    const uint32_t sum_x = (begin + end - 1u) * area / 2u;
    run_features found{area, sum_x, y * area, area, sum_x, 0};
    if (bits == 8u) {
        found.intensity = 0;
        found.weighted_x = 0;
        for (uint32_t x = begin; x < end; ++x) {
            found.intensity += row[x];
            found.weighted_x += x * row[x];
        }
    }
    found.weighted_y = static_cast<uint64_t>(y) * found.intensity;
    return found;
}

/// Add to a sum of 64 bits as its low and its high word. The additions of all threads to the low word wrap around as
/// often as they report it, so the sum is exact in any order.
__device__ void add_to_words(uint32_t* words, uint64_t value)
{
    const uint32_t low = static_cast<uint32_t>(value);
    const uint32_t old = atomicAdd(&words[0], low);
    const uint32_t high = static_cast<uint32_t>(value >> 32) + (old + low < old ? 1u : 0u);
    if (high != 0u) atomicAdd(&words[1], high);
}

/// Add a run in row y to component i, while other threads of the block add others; `columns` are those of the
/// collection `components`.
template <typename Columns>
__device__ void add_run(const Columns& columns, uint32_t i, const image_run& span, uint32_t y, const run_features& own)
{
    atomicAdd(&columns.area[i], own.area);
    add_to_words(&columns.sum_x[2u * i], own.sum_x);
    add_to_words(&columns.sum_y[2u * i], own.sum_y);
    add_to_words(&columns.intensity[2u * i], own.intensity);
    add_to_words(&columns.weighted_x[2u * i], own.weighted_x);
    add_to_words(&columns.weighted_y[2u * i], own.weighted_y);
    atomicMin(&columns.box[i].left, uint32_t{span.begin});
    atomicMin(&columns.box[i].top, y);
    atomicMax(&columns.box[i].right, span.end - 1u);
    atomicMax(&columns.box[i].bottom, y);
}

}  // namespace hlt
