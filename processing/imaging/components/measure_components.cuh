// Features of each component from its runs, not from its pixels; only intensities need the pixels (A. Hennequin,
// Performance optimization for the LHCb experiment, PhD thesis, Sorbonne Universite, 2022, section 4.3, algorithm 11).
//
// In:  the runs with their labels, the rows of the image. Out: the columns of components.
// One block per event; threads stride over the components, then over the rows. Bounds: components.count components,
// at most components.bound; a run with a higher label is left out.
// Sums: 2^28 pixels of 255 at column 16383 sum up to 2^50, so they have two words.
#pragma once

#include "imaging/components/clear_features.cuh"
#include "imaging/components/generated/ccl_measure_components.h"
#include "imaging/components/generated/component_types.h"
#include "imaging/components/run_features.cuh"

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
            const hlt::run_features own = hlt::features_of_run(span, y, row, shape.bits);
            hlt::add_run(p.components, i, span, y, own);
        }
    }
}
