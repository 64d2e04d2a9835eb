// Runs on the CPU: one pass over the pixels, which counts and writes (foreground_cpu.h).
#pragma once

#include "imaging/components/find_runs.cuh"
#include "imaging/components/foreground_cpu.h"

HLT_CPU_FORM(ccl_find_runs)
{
    if (!p.takes(event)) return;

    const hlt::image_shape shape = p.images.shape[event];
    const uint32_t n_rows = p.image_rows.count[event];
    const uint32_t first_row = p.image_rows.first(event);
    hlt::image_run* const spans = p.runs.span + p.runs.first(event);
    uint16_t edges[hlt::max_side + 2u + hlt::spare_edges];
    uint32_t n_runs = 0;
    for (uint32_t y = 0; y < n_rows; ++y) {
        const uint32_t data = p.image_rows.data[first_row + y];
        uint32_t n = 0;
        if (data != hlt::no_row_data) {
            n = hlt::write_edges(p.input.bytes + data, shape, p.threshold, edges) / 2u;
            std::memcpy(spans + n_runs, edges, n * sizeof(hlt::image_run));
        }
        p.image_rows.runs[first_row + y] = {n_runs, n};
        n_runs += n;
    }
    p.runs.count[event] = n_runs;
}
