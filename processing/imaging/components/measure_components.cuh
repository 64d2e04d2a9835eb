// Features of each component from its runs, not from its pixels; only intensities need the pixels (A. Hennequin,
// Performance optimization for the LHCb experiment, PhD thesis, Sorbonne Universite, 2022, section 4.3, algorithm 11).
//
// In:  the runs with their labels, the rows of the image. Out: the columns of components.
// One block per event; threads stride over the components, then over the rows. Bounds: components.count components,
// at most max_components; a run with a higher label is left out.
// Sums: 2^28 pixels of 255 at column 16383 sum up to 2^50, so they have two words.
#pragma once

#include "imaging/components/clear_features.cuh"
#include "imaging/components/generated/ccl_measure_components.h"
#include "imaging/components/generated/component_types.h"
#include "imaging/images/strip.cuh"

namespace hlt {

/// Add to a sum of 64 bits as its low and its high word. The additions of all threads to the low word wrap around as
/// often as they report it, so the sum is exact in any order.
__device__ void add_to_words(uint32_t* words, uint64_t value)
{
    const uint32_t low = static_cast<uint32_t>(value);
    const uint32_t old = atomicAdd(&words[0], low);
    const uint32_t high = static_cast<uint32_t>(value >> 32) + (old + low < old ? 1u : 0u);
    if (high != 0u) atomicAdd(&words[1], high);
}

}  // namespace hlt

HLT_KERNEL(ccl_measure_components)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;

    const hlt::image_shape shape = p.images.shape[event];
    const uint32_t n_components = p.components.count[event];
    const uint32_t first = p.components.first(event);
    hlt::clear_features(p.components, first, n_components);
    hlt::block_barrier();

    const uint32_t n_rows = p.image_rows.count[event];
    const uint32_t first_row = p.image_rows.first(event);
    const uint32_t first_run = p.runs.first(event);
    for (uint32_t y = threadIdx.x; y < n_rows; y += blockDim.x) {
        const hlt::row_runs runs = p.image_rows.runs[first_row + y];
        if (runs.count == 0u) continue;
        const uint8_t* const row = p.input.bytes + p.image_rows.data[first_row + y];
        for (uint32_t run = first_run + runs.first; run < first_run + runs.first + runs.count; ++run) {
            if (p.runs.label[run] >= n_components) continue;
            const uint32_t i = first + p.runs.label[run];
            const hlt::image_run span = p.runs.span[run];
            const uint32_t begin = span.begin, end = span.end, area = end - begin;
            const uint32_t sum_x = (begin + end - 1u) * area / 2u;
            atomicAdd(&p.components.area[i], area);
            hlt::add_to_words(&p.components.sum_x[2u * i], sum_x);
            hlt::add_to_words(&p.components.sum_y[2u * i], y * area);
            atomicMin(&p.components.box[i].left, begin);
            atomicMin(&p.components.box[i].top, y);
            atomicMax(&p.components.box[i].right, end - 1u);
            atomicMax(&p.components.box[i].bottom, y);
            uint32_t intensity = area;
            uint64_t weighted_x = sum_x;
            if (shape.bits == 8u) {
                intensity = 0;
                weighted_x = 0;
                for (uint32_t x = begin; x < end; ++x) {
                    intensity += row[x];
                    weighted_x += x * row[x];
                }
            }
            hlt::add_to_words(&p.components.intensity[2u * i], intensity);
            hlt::add_to_words(&p.components.weighted_x[2u * i], weighted_x);
            hlt::add_to_words(&p.components.weighted_y[2u * i], static_cast<uint64_t>(y) * intensity);
        }
    }
}
