// The fits of the common kernel with an event in each lane of a vector: sixteen at once with AVX-512, eight with AVX2.
// The hits of these events are first put side by side. A group takes a step for each hit of its longest event.
#pragma once

#include "framework/device/wide_lanes.h"
#include "na62/rich/fit_ring.cuh"

namespace hlt {

/// Hits of n_wide events, [hit][event]. Places behind the last hit of an event have any finite values.
struct hits_of_events {
    float x[rich_max_hits][n_wide];
    float y[rich_max_hits][n_wide];
    int_wide count;
    uint32_t rows;

    template <typename Parameters>
    void fill(const Parameters& p, uint32_t first_event, uint32_t n_events)
    {
        rows = 0;
        count = int_wide{};
        for (uint32_t l = 0; l < n_events; ++l) {
            const uint32_t n = p.rich_hits.count[first_event + l];
            const float* const from_x = p.rich_hits.x + p.rich_hits.first(first_event + l);
            const float* const from_y = p.rich_hits.y + p.rich_hits.first(first_event + l);
            for (uint32_t k = 0; k < n; ++k) {
                x[k][l] = from_x[k];
                y[k][l] = from_y[k];
            }
            count[l] = static_cast<int32_t>(n);
            rows = max_of(rows, n);
        }
    }
    float_wide x_of(uint32_t k) const { return at(x[k]); }
    float_wide y_of(uint32_t k) const { return at(y[k]); }
    int_wide has(uint32_t k) const { return count > static_cast<int32_t>(k); }

  private:
    static float_wide at(const float (&row)[n_wide])
    {
        float_wide lanes;
        load_wide(lanes, row);
        return lanes;
    }
};

}  // namespace hlt

HLT_CPU_FORM(rich_fit_ring)
{
    if constexpr (!hlt::compares_eight_lanes) return rich_fit_ring(p, dim3{event, 1, 1});
    // A block is an MFP.
    if (event >= p.batch->n_rows) return;
    const hlt::mfp_row row = p.input.mfp_rows[event];
    if (row.source_id != hlt::rich_source) return;
    hlt::hits_of_events hits{};
    for (uint32_t begin = 0; begin < row.n_fragments; begin += hlt::n_wide) {
        const uint32_t first = row.first_event + begin, n = hlt::min_of(row.n_fragments - begin, hlt::n_wide);
        hits.fill(p, first, n);
        hlt::circle_sums<hlt::float_wide> sums;
        sums.clear();
        for (uint32_t k = 0; k < hits.rows; ++k) sums.add_point(hits.x_of(k), hits.y_of(k), hits.has(k));
        sums.finish_mean();
        for (uint32_t k = 0; k < hits.rows; ++k) sums.add_products(hits.x_of(k), hits.y_of(k), hits.has(k));
        const hlt::circle<hlt::float_wide> lines = hlt::solve_circle(sums, p.method, p.min_spread);
        hlt::float_wide squares{};
        for (uint32_t k = 0; k < hits.rows; ++k) {
            const hlt::float_wide distance = hlt::residual(lines, hits.x_of(k), hits.y_of(k));
            squares += hits.has(k) ? distance * distance : hlt::float_wide{};
        }
        for (uint32_t l = 0; l < n; ++l)
            hlt::write_only_ring(p, first + l, {lines.x[l], lines.y[l], lines.radius[l], lines.valid[l]}, squares[l]);
    }
}
