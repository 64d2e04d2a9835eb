// Runs on the CPU: one pass over the pixels, which counts and writes (foreground_cpu.h).
#pragma once

#include "imaging/components/find_runs.cuh"
#include "imaging/components/foreground_cpu.h"

namespace hlt {

/// The runs of an image, row by row.
template <typename Parameters>
inline void find_runs_in_order(const Parameters& p, uint32_t event)
{
    const image_shape shape = p.images.shape[event];
    const uint32_t n_rows = p.image_rows.count[event];
    const uint32_t first_row = p.image_rows.first(event);
    image_run* const spans = p.runs.span + p.runs.first(event);
    uint16_t edges[max_side + 2u + spare_edges];
    uint32_t n_runs = 0;
    for (uint32_t y = 0; y < n_rows; ++y) {
        const uint32_t data = p.image_rows.data[first_row + y];
        uint32_t n = 0;
        if (data != no_row_data) {
            n = write_edges(p.input.bytes + data, shape, p.threshold, edges) / 2u;
            std::memcpy(spans + n_runs, edges, n * sizeof(image_run));
        }
        p.image_rows.runs[first_row + y] = {n_runs, n};
        n_runs += n;
    }
    p.runs.count[event] = n_runs;
}

}  // namespace hlt

HLT_CPU_FORM(ccl_find_runs)
{
    if (p.takes(event)) hlt::find_runs_in_order(p, event);
}
