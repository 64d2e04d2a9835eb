// The fits of the common kernel with an event in each lane of a vector: sixteen at once with AVX-512, eight with AVX2.
// The hits of these events are first put side by side. A group takes a step for each hit of its longest event.
#pragma once

#include "framework/device/wide_lanes.h"
#include "na62/rich/fit_ring.cuh"

namespace hlt {

/// Turn eight vectors into those of their lanes.
inline __attribute__((always_inline)) void transpose(float8 (&rows)[8])
{
    float8 pairs[8], fours[8];
    for (uint32_t i = 0; i < 8u; i += 2u) {
        pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1u], 0, 8, 1, 9, 4, 12, 5, 13);
        pairs[i + 1u] = __builtin_shufflevector(rows[i], rows[i + 1u], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (uint32_t i = 0; i < 8u; i += 4u)
        for (uint32_t half = 0; half < 2u; ++half) {
            const float8 &low = pairs[i + half], &high = pairs[i + half + 2u];
            fours[i + 2u * half] = __builtin_shufflevector(low, high, 0, 1, 8, 9, 4, 5, 12, 13);
            fours[i + 2u * half + 1u] = __builtin_shufflevector(low, high, 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (uint32_t i = 0; i < 4u; ++i) {
        rows[i] = __builtin_shufflevector(fours[i], fours[i + 4u], 0, 1, 2, 3, 8, 9, 10, 11);
        rows[i + 4u] = __builtin_shufflevector(fours[i], fours[i + 4u], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

/// Hits of n_wide events, [hit][event]. Places behind the last hit of an event have any values.
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
            count[l] = static_cast<int32_t>(n);
            rows = max_of(rows, n);
        }
        for (uint32_t l = 0; l < n_events; l += 8u) {
            const uint32_t last = min_of(n_events - l, 8u) - 1u;
            put_side_by_side(x, p, p.rich_hits.x, first_event + l, last, l);
            put_side_by_side(y, p, p.rich_hits.y, first_event + l, last, l);
        }
    }
    float_wide x_of(uint32_t k) const { return at(x[k]); }
    float_wide y_of(uint32_t k) const { return at(y[k]); }
    int_wide has(uint32_t k) const { return count > static_cast<int32_t>(k); }

  private:
    /// Eight events from `event` on: those after the last one are copies of it.
    template <typename Parameters>
    void put_side_by_side(float (&to)[rich_max_hits][n_wide], const Parameters& p, const float* of, uint32_t event,
                          uint32_t last, uint32_t lane)
    {
        static_assert(rich_max_hits % 8u == 0u);
        for (uint32_t k = 0; k < rows; k += 8u) {
            float8 block[8];
            for (uint32_t l = 0; l < 8u; ++l)
                std::memcpy(&block[l], of + p.rich_hits.first(event + min_of(l, last)) + k, sizeof block[l]);
            transpose(block);
            for (uint32_t i = 0; i < 8u; ++i) std::memcpy(&to[k + i][lane], &block[i], sizeof block[i]);
        }
    }
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
        const hlt::circle<hlt::float_wide> lines = hlt::solve_circle(hlt::moments_of(sums), p.method, p.min_spread);
        hlt::float_wide squares{};
        for (uint32_t k = 0; k < hits.rows; ++k) {
            const hlt::float_wide distance = hlt::residual(lines, hits.x_of(k), hits.y_of(k));
            squares += hits.has(k) ? distance * distance : hlt::float_wide{};
        }
        for (uint32_t l = 0; l < n; ++l)
            hlt::write_only_ring(p, first + l, {lines.x[l], lines.y[l], lines.radius[l], lines.valid[l]}, squares[l]);
    }
}
