// Pairs of x hits on the CPU (x_hits.cuh). Most first hits have no last one in their window; cells of 0.8 mm say so for
// sixteen of them at once, and where the window of the others begins.
#pragma once

#include "lhcb/forward/bend_cpu.h"
#include "lhcb/long_tracks/scifi_zones.cuh"

namespace hlt {

/// scifi_cell of many places.
inline __attribute__((always_inline)) uint_wide cells_of(const float_wide& x)
{
    const float_wide at = (x - scifi_bins_begin) * scifi_cells_per_mm;
    constexpr float largest = static_cast<float>(n_scifi_bins * scifi_cells_per_bin - 1u);
    const float_wide zero{}, last = zero + largest;
    return (uint_wide) __builtin_convertvector(at > zero ? (at < last ? at : last) : zero, int_wide);
}

/// Whether the hits of each zone ascend. Tables lead past hits that do not.
inline bool hits_ascend(const float* x, const uint16_t* bins)
{
    for (uint32_t zone = 0; zone < n_scifi_zones; ++zone) {
        const uint32_t begin = bins[zone * scifi_bin_stride], end = bins[zone * scifi_bin_stride + n_scifi_bins];
        for (uint32_t i = begin + 1u; i < end; i += n_wide) {
            float_wide before, at;
            load_wide(before, x + i - 1u);
            load_wide(at, x + i);
            const uint32_t used = first_bits(end - i);
            if ((bits_where<wide_comparison::at_most>(before, at) & used) != used) return false;
        }
    }
    return true;
}

/// Pairs of a first and a last hit.
struct pairs_with_places {
    static constexpr uint32_t max = 256;
    static constexpr uint32_t size = max + 2u * n_wide;
    uint32_t hits[size];  // the first one in the upper half
    float dx[size];       // mm, of the first hit from the straight track
    float x_last[size];   // mm, of the last hit
    uint32_t n = 0;
};

/// Collect the pairs of a seed in ascending order and call `examine(pairs)` for some at a time, until it is false.
/// False if windows do not ascend with the first hit: find_pairs would have left out some of these pairs.
template <typename Examine>
bool find_pairs_in_cells(const scifi_event& hits, const x_seed_lanes& seed, const forward_hypothesis& where,
                         uint32_t half, pairs_with_places& pairs, const Examine& examine)
{
    const scifi_zone first_zone(hits, seed.layers.first, half), last_zone(hits, seed.layers.last, half);
    const uint32_t zone = 2u * seed.layers.last + half;
    const uint32_t* const cells = &hits.cells[0];
    const uint16_t* const bins = &hits.bins[zone * scifi_bin_stride];
    const uint32_t* const cells_of_zone = cells + zone * n_scifi_bins;
    const float* const x_of = &hits.x[0];
    const uint32_t begin = first_zone.from(seed.begin), first_end = first_zone.from(seed.end), end = last_zone.end();
    float lows[n_wide + 1u], highs[n_wide];
    uint32_t first_cells[n_wide];
    lows[0] = -3e38f;
    pairs.n = 0;
    for (uint32_t first = begin; first < first_end; first += n_wide) {
        float_wide x, before;
        load_wide(x, x_of + first);
        const float_wide dx = x - seed.straight_first;
        const float_wide expected = seed.straight_last + dx * seed.ratio(dx);
        const float_wide tolerance = seed.to_tolerance * (where.sigma_offset.constant + seed.per_dx * absolute(dx));
        const float_wide low = expected - tolerance, high = expected + tolerance;
        const uint32_t used = first_bits(first_end - first);
        store_wide(lows + 1, low);
        store_wide(highs, high);
        load_wide(before, lows);
        if ((bits_where<wide_comparison::at_least>(low, before) & used) != used) return false;
        lows[0] = lows[n_wide];
        const uint_wide first_cell = cells_of(low), n_more = cells_of(high) - first_cell;
        const uint_wide bit = first_cell + zone * (n_scifi_bins * scifi_cells_per_bin);
        const uint_wide seen = words_at(cells, bit / 8u) >> bit % 8u;
        const uint_wide beyond = in_all_lanes<uint_wide>(2u) << (n_more & 31u);
        uint32_t bits = bits_of(((seen & (beyond - 1u)) != 0u) | (n_more >= max_cells_at_once)) & used;
        if (bits == 0u) continue;
        store_wide(first_cells, first_cell);
        for (; bits != 0u; bits &= bits - 1u) {
            const uint32_t l = lowest_bit(bits), cell = first_cells[l], bin = cell / scifi_cells_per_bin;
            const float lowest = lows[l + 1u], highest = highs[l], dx_of = x_of[first + l] - seed.straight_first;
            uint32_t from = bins[bin] + static_cast<uint32_t>(__builtin_popcount(
                                            cells_of_zone[bin] & ((1u << cell % scifi_cells_per_bin) - 1u)));
            for (; from < end; from += n_wide) {
                load_wide(x, x_of + from);
                const uint32_t not_behind =
                    bits_where<wide_comparison::less>(x, float_wide{} + highest) & first_bits(end - from);
                const uint32_t inside = bits_where<wide_comparison::at_least>(x, float_wide{} + lowest) & not_behind;
                store_packed_wide(pairs.hits + pairs.n, wide_numbers + ((first + l) << 16u | from), inside);
                store_wide(pairs.dx + pairs.n, float_wide{} + dx_of);
                store_packed_wide(pairs.x_last + pairs.n, x, inside);
                pairs.n += static_cast<uint32_t>(__builtin_popcount(inside));
                if (pairs.n > pairs_with_places::max) {
                    if (!examine(pairs)) return true;
                    pairs.n = 0;
                }
                if (not_behind != all_wide) break;
            }
        }
    }
    if (pairs.n != 0u) examine(pairs);
    return true;
}

/// For each lane: whether a zone has a hit closer to x than `most`; as may_have_hit.
inline __attribute__((always_inline)) int_wide may_have_hit_wide(const uint32_t* cells, uint32_t zone,
                                                                 const float_wide& x, const float_wide& most)
{
    const uint_wide first = cells_of(x - (most + cell_margin));
    const uint_wide n_more = cells_of(x + (most + cell_margin)) - first;
    const uint_wide bit = first + zone * (n_scifi_bins * scifi_cells_per_bin);
    const uint_wide seen = words_at(cells, bit / 8u) >> bit % 8u;
    const uint_wide beyond = in_all_lanes<uint_wide>(2u) << (n_more & 31u);
    return ((seen & (beyond - 1u)) != 0u) | (n_more >= max_cells_at_once);
}

/// A pair that may have enough hits in the x layers.
struct kept_pairs {
    static constexpr uint32_t size = pairs_with_places::size;
    uint32_t hits[size], n_layers[size];
    float dx[size], rise[size], kink[size];
    uint32_t n;
};

/// Keep those of the first n pairs that may have enough hits in the other x layers.
inline void keep_pairs(const scifi_event& hits, const x_seed_lanes& seed, const forward_hypothesis& where,
                       uint32_t half, const forward_cuts& cuts, const pairs_with_places& pairs, uint32_t n,
                       kept_pairs& kept)
{
    const uint32_t* const cells = &hits.cells[0];
    kept.n = 0;
    for (uint32_t base = 0; base < n; base += n_wide) {
        float_wide dx, x_last;
        uint_wide pair;
        load_wide(dx, pairs.dx + base);
        load_wide(x_last, pairs.x_last + base);
        load_wide(pair, pairs.hits + base);
        const float_wide rise = x_last - seed.straight_last - dx;
        const float_wide kink = rise * seed.kink_per_rise(rise);
        const float_wide most = cuts.x_window(kink);
        uint_wide n_layers{};
        for (uint32_t k = 0; k < 2u; ++k)
            n_layers -=
                (uint_wide)may_have_hit_wide(cells, 2u * seed.layers.others[k] + half, seed.place(k, dx, rise), most);
        uint32_t bits = bits_of(n_layers != 0u) & first_bits(n - base) &
                        bits_where<wide_comparison::at_least>(kink, float_wide{} + where.low) &
                        bits_where<wide_comparison::at_most>(kink, float_wide{} + where.high);
        if (bits == 0u) continue;
        for (uint32_t k = 2u; k < n_other_x_layers; ++k)
            n_layers -=
                (uint_wide)may_have_hit_wide(cells, 2u * seed.layers.others[k] + half, seed.place(k, dx, rise), most);
        bits &= bits_of(n_layers >= 2u);
        store_packed_wide(kept.hits + kept.n, pair, bits);
        store_packed_wide(kept.n_layers + kept.n, n_layers + 2u, bits);
        store_packed_wide(kept.dx + kept.n, dx, bits);
        store_packed_wide(kept.rise + kept.n, rise, bits);
        store_packed_wide(kept.kink + kept.n, kink, bits);
        kept.n += static_cast<uint32_t>(__builtin_popcount(bits));
    }
}

}  // namespace hlt
