// One circle through all hits of an event, by the fit that `method` names (circle.cuh).
//
// In: positions and number of the hits. Out: one ring, or none and the flag no_circle. One block per MFP of the RICH:
// a thread takes an event, so a warp fits 32 events at once. Sums run over the hits in their order, whatever the number
// of threads. The CPU form has an event in each lane of a vector. Bound: rich_max_hits.
#pragma once

#include "na62/rich/circle.cuh"
#include "na62/rich/generated/rich_fit_ring.h"
#include "na62/rich/generated/rich_flags.h"

namespace hlt {

/// Write the ring of an event, or none.
template <typename Parameters>
__device__ void write_only_ring(const Parameters& p, uint32_t event, const circle<float>& line, float squares)
{
    if (line.valid == 0.f) {
        p.rings.count[event] = 0;
        p.events.flags[event] |= no_circle;
        return;
    }
    p.rings.count[event] = 1;
    p.rings.ring[p.rings.first(event)] = {line.x, line.y, line.radius, squares / (p.resolution * p.resolution),
                                          p.rich_hits.count[event]};
}

}  // namespace hlt

HLT_KERNEL(rich_fit_ring)
{
    if (blockIdx.x >= p.batch->n_rows) return;
    const hlt::mfp_row row = p.input.mfp_rows[blockIdx.x];
    if (row.source_id != hlt::rich_source) return;
    for (uint32_t i = threadIdx.x; i < row.n_fragments; i += blockDim.x) {
        const uint32_t event = row.first_event + i, n = p.rich_hits.count[event];
        const float* const x = p.rich_hits.x + p.rich_hits.first(event);
        const float* const y = p.rich_hits.y + p.rich_hits.first(event);
        hlt::circle_sums<float> sums;
        sums.clear();
        for (uint32_t k = 0; k < n; ++k) sums.add_point(x[k], y[k], true);
        sums.finish_mean();
        for (uint32_t k = 0; k < n; ++k) sums.add_products(x[k], y[k], true);
        const hlt::circle<float> line = hlt::solve_circle(hlt::moments_of(sums), p.method, p.min_spread);
        float squares = 0.f;
        for (uint32_t k = 0; k < n; ++k) {
            const float distance = hlt::residual(line, x[k], y[k]);
            squares += distance * distance;
        }
        hlt::write_only_ring(p, event, line, squares);
    }
}
