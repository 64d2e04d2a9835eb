// The search of the common kernel with triplets in the lanes of a vector, and in the end rings. With AVX-512 each
// triplet has two lanes, for two hits at a time (hit_lanes.cuh). Events in the lanes would wait for that with most
// rings.
#pragma once

#include "framework/device/wide_lanes.h"
#include "na62/rich/search_rings.cuh"

namespace hlt {

/// Lanes of eight triplets.
using triplet_lanes = float_wide;
constexpr uint32_t lanes_of_ring = lanes_of<triplet_lanes>::ring_step;
static_assert(8u * lanes_of_ring == n_wide);
static_assert(rich_max_rings <= 8u);
static_assert(rich_max_hits % n_wide == 0u);

/// The axes of the triplets in their lanes.
struct triplet_axes {
    float x[n_wide], y[n_wide];

    constexpr triplet_axes() : x{}, y{}
    {
        for (uint32_t l = 0; l < n_wide; ++l) {
            x[l] = axis_x_of(l / lanes_of_ring);
            y[l] = axis_y_of(l / lanes_of_ring);
        }
    }
};
inline constexpr triplet_axes axes_of_triplets;

/// The ring in a lane.
inline __attribute__((always_inline)) fitted_ring<float> ring_of_lane(const fitted_ring<triplet_lanes>& rings,
                                                                      uint32_t lane)
{
    return {{rings.line.x[lane], rings.line.y[lane], rings.line.radius[lane], rings.line.valid[lane]},
            rings.hits[lane],
            rings.squares[lane],
            rings.is_stable[lane]};
}

/// The largest number of the lanes, in all of them.
inline __attribute__((always_inline)) triplet_lanes largest_lane(triplet_lanes lanes)
{
#if defined(HLT_AVX512)
    lanes =
        larger_of(lanes, __builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    lanes =
        larger_of(lanes, __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
    // Both lanes of a ring are equal.
    return larger_of(lanes,
                     __builtin_shufflevector(lanes, lanes, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
#else
    lanes = larger_of(lanes, __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7, 0, 1, 2, 3));
    lanes = larger_of(lanes, __builtin_shufflevector(lanes, lanes, 2, 3, 0, 1, 6, 7, 4, 5));
    return larger_of(lanes, __builtin_shufflevector(lanes, lanes, 1, 0, 3, 2, 5, 4, 7, 6));
#endif
}

/// The lane of the best of the good rings of the triplets; n_wide if none is good.
template <typename Parameters>
inline __attribute__((always_inline)) uint32_t best_lane(const Parameters& p, const fitted_ring<triplet_lanes>& rings)
{
    const triplet_lanes none = triplet_lanes{} - 1e30f;
    const lane_mask<triplet_lanes> may_be = (int_wide)wide_numbers < static_cast<int32_t>(p.triplets * lanes_of_ring);
    const lane_mask<triplet_lanes> good = is_good_ring(p, rings) & may_be;
    if (!any_lane(good)) return n_wide;
    const triplet_lanes hits = good ? rings.hits : none;
    const lane_mask<triplet_lanes> has_most = hits == largest_lane(hits);
    const triplet_lanes squares = has_most ? -rings.squares : none;
    return lowest_bit(bits_of(has_most & (squares == largest_lane(squares))));
}

/// The least and the largest of n numbers.
inline __attribute__((always_inline)) void find_range(const float* of, uint32_t n, float& least, float& most)
{
    float_wide low = float_wide{} + of[0], high = low;
    for (uint32_t k = 0; k < n; k += n_wide) {
        float_wide here;
        load_wide(here, of + k);
        here = (int_wide)wide_numbers < static_cast<int32_t>(n - k) ? here : low;
        low = smaller_of(here, low);
        high = larger_of(here, high);
    }
    float lows[n_wide], highs[n_wide];
    store_wide(lows, low);
    store_wide(highs, high);
    for (uint32_t half = n_wide / 2u; half != 0u; half /= 2u)
        for (uint32_t l = 0; l < half; ++l) {
            lows[l] = min_of(lows[l], lows[l + half]);
            highs[l] = max_of(highs[l], highs[l + half]);
        }
    least = lows[0];
    most = highs[0];
}

/// Make the products of the hits, and the place behind the last one.
inline __attribute__((always_inline)) void finish_hits(ring_search& search)
{
    search_hits& hits = search.hits;
    for (uint32_t k = 0; k < hits.n; k += n_wide) {
        float_wide x, y;
        load_wide(x, hits.x + k);
        load_wide(y, hits.y + k);
        make_products(search.frame, x, y,
                      [&](hit_product product, const int_wide& value) { store_wide(hits.of[product] + k, value); });
    }
    hits.x[hits.n] = hits.y[hits.n] = __builtin_nanf("");
}

inline __attribute__((always_inline)) void take_all_hits(ring_search& search, const float* x, const float* y,
                                                         uint32_t n)
{
    std::memcpy(search.hits.x, x, rich_max_hits * sizeof(float));
    std::memcpy(search.hits.y, y, rich_max_hits * sizeof(float));
    search.hits.n = n;
}

/// Take the hits near a circle away.
inline __attribute__((always_inline)) void remove_hits(search_hits& hits, const circle<float>& line, float window)
{
    const float_wide zero{};
    const ring_window<float_wide> near_line({zero + line.x, zero + line.y, zero + line.radius, zero}, window);
    uint32_t n = 0;
    for (uint32_t k = 0; k < hits.n; k += n_wide) {
        float_wide x, y;
        load_wide(x, hits.x + k);
        load_wide(y, hits.y + k);
        const uint32_t left = first_bits(hits.n - k) & ~bits_of_step(near_line.has(x, y));
        // At most k hits come before, so no hit is written before it is read.
        store_packed_wide(hits.x + n, x, left);
        store_packed_wide(hits.y + n, y, left);
        n += static_cast<uint32_t>(__builtin_popcount(left));
    }
    hits.n = n;
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
    const hlt::ring_cuts cuts = hlt::cuts_of(p);
    hlt::triplet_lanes axis_x, axis_y;
    hlt::load_wide(axis_x, hlt::axes_of_triplets.x);
    hlt::load_wide(axis_y, hlt::axes_of_triplets.y);
    hlt::ring_search search;
    hlt::take_all_hits(search, hit_x, hit_y, n);
    float least_x, most_x, least_y, most_y;
    hlt::find_range(hit_x, n, least_x, most_x);
    hlt::find_range(hit_y, n, least_y, most_y);
    search.frame = hlt::frame_of_box(least_x, most_x, least_y, most_y);
    search.n_rings = search.skipped = search.left_out = 0;
    hlt::fitted_ring<float> of_first_pass{};
    bool goes_on = true;
    for (uint32_t pass = 0; goes_on && pass < hlt::rich_max_passes; ++pass) {
        hlt::finish_hits(search);
        const auto rings = hlt::ring_of_triplet(search.hits, search.frame, axis_x, axis_y, cuts, search.skipped);
        const uint32_t lane = hlt::best_lane(p, rings);
        const bool is_good = lane != hlt::n_wide;
        const hlt::fitted_ring<float> best = is_good ? hlt::ring_of_lane(rings, lane) : hlt::fitted_ring<float>{};
        if (pass == 0) of_first_pass = best;
        goes_on = hlt::take_ring(p, search, is_good, best.line,
                                 [&](const auto& line) { hlt::remove_hits(search.hits, line, p.window); });
    }
    if (goes_on) search.left_out = 1;
    // Most events have one ring, found among all hits and stable: the last fit would repeat its own.
    if (search.n_rings == 1u && of_first_pass.is_stable != 0.f)
        return hlt::write_rings(p, event, search, &of_first_pass);
    hlt::take_all_hits(search, hit_x, hit_y, n);
    hlt::finish_hits(search);
    float lines[4][hlt::n_wide]{};
    for (uint32_t r = 0; r < search.n_rings; ++r)
        for (uint32_t l = r * hlt::lanes_of_ring; l < (r + 1u) * hlt::lanes_of_ring; ++l) {
            lines[0][l] = search.rings[r].x;
            lines[1][l] = search.rings[r].y;
            lines[2][l] = search.rings[r].radius;
            lines[3][l] = search.rings[r].valid;
        }
    hlt::circle<hlt::triplet_lanes> before;
    hlt::load_wide(before.x, lines[0]);
    hlt::load_wide(before.y, lines[1]);
    hlt::load_wide(before.radius, lines[2]);
    hlt::load_wide(before.valid, lines[3]);
    hlt::fitted_ring<float> last[hlt::rich_max_rings];
    const auto refitted = hlt::refit_ring(search.hits, search.frame, before, cuts);
    for (uint32_t r = 0; r < search.n_rings; ++r) last[r] = hlt::ring_of_lane(refitted, r * hlt::lanes_of_ring);
    hlt::write_rings(p, event, search, last);
}
