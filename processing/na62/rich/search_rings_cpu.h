// The search of the common kernel with a triplet in each of eight lanes, and in the end a ring in each lane. All lanes
// read the same hit, so no lane waits for another one; events in the lanes would wait for that with most rings.
#pragma once

#include "framework/device/vector8.cuh"
#include "na62/rich/search_rings.cuh"

namespace hlt {

static_assert(rich_max_rings <= 8u);

/// Lane l of a ring in each lane.
inline fitted_ring<float> lane_of(const fitted_ring<float8>& rings, uint32_t l)
{
    return {
        {rings.line.x[l], rings.line.y[l], rings.line.radius[l], rings.line.valid[l]}, rings.hits[l], rings.squares[l]};
}

}  // namespace hlt

HLT_CPU_FORM(rich_search_rings)
{
    if constexpr (!hlt::compares_eight_lanes) return rich_search_rings(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const uint32_t n = p.rich_hits.count[event];
    const float* const hit_x = p.rich_hits.x + p.rich_hits.first(event);
    const float* const hit_y = p.rich_hits.y + p.rich_hits.first(event);
    if (n < p.min_hits) return;
    const hlt::triplet_cuts cuts = hlt::cuts_of(p);
    hlt::float8 axis_x, axis_y;
    for (uint32_t t = 0; t < 8u; ++t) {
        axis_x[t] = hlt::axis_x_of(t);
        axis_y[t] = hlt::axis_y_of(t);
    }
    hlt::ring_search search;
    std::memcpy(search.x, hit_x, n * sizeof(float));
    std::memcpy(search.y, hit_y, n * sizeof(float));
    search.n_free = n;
    search.n_rings = search.skipped = search.left_out = 0;
    bool goes_on = true;
    for (uint32_t pass = 0; goes_on && pass < hlt::rich_max_passes; ++pass) {
        const hlt::fitted_ring<hlt::float8> rings =
            hlt::ring_of_triplet(search.x, search.y, search.n_free, axis_x, axis_y, cuts, search.skipped);
        for (uint32_t t = 0; t < p.triplets; ++t) search.of_triplets[t] = hlt::lane_of(rings, t);
        goes_on = hlt::take_best_ring(p, search);
    }
    if (goes_on) search.left_out = 1;
    hlt::circle<hlt::float8> lines{};
    for (uint32_t r = 0; r < search.n_rings; ++r) {
        lines.x[r] = search.rings[r].x;
        lines.y[r] = search.rings[r].y;
        lines.radius[r] = search.rings[r].radius;
        lines.valid[r] = search.rings[r].valid;
    }
    const hlt::fitted_ring<hlt::float8> last =
        hlt::refit_ring(hit_x, hit_y, n, lines, p.window, p.method, p.min_spread);
    hlt::fitted_ring<float> rings[hlt::rich_max_rings];
    for (uint32_t r = 0; r < search.n_rings; ++r) rings[r] = hlt::lane_of(last, r);
    hlt::write_rings(p, event, search, rings);
}
