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
    return {{rings.line.x[l], rings.line.y[l], rings.line.radius[l], rings.line.valid[l]},
            rings.hits[l],
            rings.squares[l],
            rings.is_stable[l] != 0};
}

/// The best of the good rings of the triplets in the lanes; not valid if none is good.
template <typename Parameters>
inline __attribute__((always_inline)) fitted_ring<float> best_of_lanes(const Parameters& p,
                                                                       const fitted_ring<float8>& rings)
{
    const uint32_t good = bits_of(is_good_ring(p, rings)) & ((1u << p.triplets) - 1u);
    if (good == 0u) return {};
    return lane_of(rings, best_ring(good, rings.hits, rings.squares));
}

/// Take the hits near a circle away, eight at once.
inline __attribute__((always_inline)) void remove_hits(ring_search& search, const circle<float>& line, float window)
{
    static_assert(rich_max_hits % 8u == 0u);
    const float8 zero{};
    const ring_window<float8> near_line({zero + line.x, zero + line.y, zero + line.radius, zero}, window);
    uint32_t n = 0;
    for (uint32_t k = 0; k < search.n_free; k += 8u) {
        float8 x, y;
        load8(x, search.x + k);
        load8(y, search.y + k);
        const uint32_t here = (1u << min_of(search.n_free - k, 8u)) - 1u;
        const uint32_t left = here & ~bits_of(near_line.has(x, y));
        // At most k hits come before, so no hit is written before it is read.
        store_packed(search.x + n, x, left);
        store_packed(search.y + n, y, left);
        n += static_cast<uint32_t>(__builtin_popcount(left));
    }
    search.n_free = n;
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
    std::memcpy(search.x, hit_x, sizeof search.x);
    std::memcpy(search.y, hit_y, sizeof search.y);
    search.n_free = n;
    search.n_rings = search.skipped = search.left_out = 0;
    hlt::fitted_ring<float> of_first_pass{};
    bool goes_on = true;
    for (uint32_t pass = 0; goes_on && pass < hlt::rich_max_passes; ++pass) {
        const hlt::fitted_ring<hlt::float8> rings =
            hlt::ring_of_triplet(search.x, search.y, search.n_free, axis_x, axis_y, cuts, search.skipped);
        const hlt::fitted_ring<float> best = hlt::best_of_lanes(p, rings);
        if (pass == 0) of_first_pass = best;
        goes_on = hlt::take_ring(p, search, best.line.valid != 0.f, best.line,
                                 [&](const auto& line) { hlt::remove_hits(search, line, p.window); });
    }
    if (goes_on) search.left_out = 1;
    // Most events have one ring, found among all hits and stable: the last fit would repeat its own.
    if (search.n_rings == 1u && of_first_pass.is_stable) return hlt::write_rings(p, event, search, &of_first_pass);
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
