// Pairs of x hits on the CPU (x_hits.cuh), of several tracks in one list. Most first hits have no last hit in their
// window. Cells of 0.8 mm show this for n_wide hits at once, and give the start of the window for the others.
#pragma once

#include "lhcb/tracks/forward/tracks_cpu.h"
#include "lhcb/tracks/long/scifi_cells_cpu.h"

namespace hlt {

static_assert(2u * scifi_hit_padding >= n_wide, "vectors reach behind the last hit");

/// True if the hits of each zone ascend. The tables skip hits that do not.
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

/// Pairs of a first and a last hit; the pairs of a track are consecutive and ascend.
struct x_pair_list {
    static constexpr uint32_t max = 512;
    static constexpr uint32_t size = max + 2u * n_wide;
    uint32_t hits[size];   // the first one in the upper half
    uint32_t track[size];  // its lane
    float dx[size];        // mm, of the first hit from the straight track
    float x_last[size];    // mm, of the last hit
    uint32_t n = 0;
};

/// The first hits of a track whose pairs are not yet listed.
struct first_hits_left {
    uint32_t next = 0, end = 0;
    float_wide before = float_wide{} - 3e38f;  // start of the last window, in the last lane

    first_hits_left() = default;
    first_hits_left(const scifi_event& hits, const x_seed_of<float_wide>& seed, uint32_t t, uint32_t half)
    {
        const scifi_zone zone(hits, seed.layers.first, half);
        next = zone.from(seed.begin[t]);
        end = zone.from(seed.end[t]);
    }
};

/// Windows in the last layer, of consecutive first hits.
class last_hit_windows {
  public:
    static constexpr uint32_t max = 8u * n_wide;

    /// Compute the windows of some first hits of a track; `before`: as in first_hits_left. Returns false if they do not
    /// ascend with the first hit, because find_pairs would then miss pairs.
    inline __attribute__((always_inline)) bool fill(const x_seed_of<float_wide>& seed, const kink_error& sigma_offset,
                                                    uint32_t t, const uint32_t* cells, uint32_t zone, const float* x_of,
                                                    uint32_t n, float_wide& before)
    {
        const float_wide none{}, straight_first = none + seed.straight_first[t],
                                 straight_last = none + seed.straight_last[t],
                                 to_tolerance = none + seed.to_tolerance[t], per_dx = none + seed.per_dx[t];
        const parabola_of<float_wide> ratio{none + seed.ratio.a0[t], none + seed.ratio.a1[t], none + seed.ratio.a2[t]};
        n_firsts_ = n;
        n_ = 0;
        for (uint32_t base = 0; base < n; base += n_wide) {
            float_wide x;
            load_wide(x, x_of + base);
            const float_wide dx = x - straight_first;
            const float_wide expected = straight_last + dx * ratio(dx);
            const float_wide tolerance = to_tolerance * (sigma_offset.constant + per_dx * absolute(dx));
            const float_wide low = expected - tolerance, high = expected + tolerance;
            const uint32_t used = first_bits(n - base);
            const uint32_t ascends = bits_where<wide_comparison::at_least>(low, moved_in(before, low)) & used;
            before = low;
            if (ascends != used) return false;
            const uint_wide first_cell = cells_of(low), n_more = cells_of(high) - first_cell;
            const uint_wide bit = first_cell + zone * (n_scifi_bins * scifi_cells_per_bin);
            const uint_wide seen = words_at(cells, bit / 8u) >> bit % 8u;
            const uint_wide beyond = in_all_lanes<uint_wide>(2u) << (n_more & 31u);
            const uint32_t bits = bits_of(((seen & (beyond - 1u)) != 0u) | (n_more >= max_cells_at_once)) & used;
            store_wide(dx_ + base, dx);
            store_wide(low_ + base, low);
            store_wide(high_ + base, high);
            store_wide(cell_ + base, first_cell);
            store_packed_wide(window_ + n_, wide_numbers + base, bits);
            n_ += static_cast<uint32_t>(__builtin_popcount(bits));
        }
        return true;
    }

    /// Add the pairs of the windows that may have hits to a list, until there are at least `enough`; `examine` empties
    /// the list when it is full, and no pair follows if it returns false. Returns the number of first hits that are
    /// done.
    template <typename Examine>
    inline __attribute__((always_inline)) uint32_t add_pairs(const scifi_event& hits, uint32_t zone, uint32_t first,
                                                             uint32_t enough, x_pair_list& pairs,
                                                             const Examine& examine) const
    {
        const uint16_t* const bins = &hits.bins[zone * scifi_bin_stride];
        const uint32_t* const cells = &hits.cells[zone * n_scifi_bins];
        const float* const x_of = &hits.x[0];
        const uint32_t end = bins[n_scifi_bins], n_windows = n_;
        uint32_t n = pairs.n, until = n + enough;
        for (uint32_t number = 0; number < n_windows; ++number) {
            const uint32_t l = window_[number];
            if (n >= until) {
                pairs.n = n;
                return l;
            }
            const uint32_t cell = cell_[l], bin = cell / scifi_cells_per_bin;
            const float low = low_[l], high = high_[l], dx = dx_[l];
            const uint32_t before = cells[bin] & ((1u << cell % scifi_cells_per_bin) - 1u);
            for (uint32_t from = bins[bin] + static_cast<uint32_t>(__builtin_popcount(before)); from < end;
                 from += 8u) {
                float8 x;
                load8(x, x_of + from);
                const uint32_t not_behind =
                    bits_where<wide_comparison::less>(x, float8{} + high) & first_of_eight(end - from);
                const uint32_t inside = bits_where<wide_comparison::at_least>(x, float8{} + low) & not_behind;
                store_packed(pairs.hits + n, lane_numbers + ((first + l) << 16u | from), inside);
                const float8 same_dx = float8{} + dx;
                std::memcpy(pairs.dx + n, &same_dx, sizeof same_dx);
                store_packed(pairs.x_last + n, x, inside);
                n += static_cast<uint32_t>(__builtin_popcount(inside));
                if (n > x_pair_list::max) {
                    pairs.n = n;
                    if (!examine()) return n_firsts_;
                    until = max_of(until, n) - n;
                    n = 0;
                }
                if (not_behind != 0xffu) break;
            }
        }
        pairs.n = n;
        return n_firsts_;
    }

    /// The start of the window of a first hit.
    float low(uint32_t first) const { return low_[first]; }

  private:
    float low_[max], high_[max], dx_[max];
    uint32_t cell_[max], window_[max + n_wide];
    uint32_t n_firsts_, n_;
};

/// Pairs that a track adds at once, for each candidate that it may still have. About one pair in five becomes one in
/// dense events, so a track seldom makes many pairs after its last candidate.
constexpr uint32_t pairs_of_candidate = 4;

/// Add pairs of the next first hits of the track in lane t; `left`: its remaining numbers of pairs and candidates.
/// `examine()` is called when the list is full. Returns false if windows do not ascend with the first hit.
template <typename Examine>
bool find_pairs_in_cells(const scifi_event& hits, const x_seed_of<float_wide>& seed, const kink_error& sigma_offset,
                         uint32_t t, uint32_t half, first_hits_left& firsts, uint32_t& left_pairs,
                         const uint32_t& left_candidates, x_pair_list& pairs, const Examine& examine)
{
    const uint32_t zone = 2u * seed.layers.last + half, first = firsts.next;
    const uint32_t n_firsts = min_of(firsts.end - first, last_hit_windows::max);
    uint32_t n_before = pairs.n;
    const auto count = [&] {
        const uint32_t n = min_of(pairs.n - n_before, left_pairs);
        left_pairs -= n;
        pairs.n = n_before + n;
        for (uint32_t i = n_before; i < pairs.n; i += n_wide) store_wide(pairs.track + i, in_all_lanes<uint_wide>(t));
    };
    last_hit_windows windows;
    if (!windows.fill(seed, sigma_offset, t, &hits.cells[0], zone, &hits.x[first], n_firsts, firsts.before))
        return false;
    const uint32_t enough = pairs_of_candidate * left_candidates;
    const uint32_t n_done = windows.add_pairs(hits, zone, first, enough, pairs, [&] {
        count();
        examine();
        n_before = pairs.n = 0;
        return left_pairs != 0u && left_candidates != 0u;
    });
    count();
    firsts.next += n_done;
    if (n_done != n_firsts) firsts.before = float_wide{} + windows.low(n_done - 1u);
    return true;
}

}  // namespace hlt
