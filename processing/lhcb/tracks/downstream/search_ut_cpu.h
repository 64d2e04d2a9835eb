// The search for downstream tracks on the CPU, with the formulas of the common kernel in the lanes of vector registers.
//
// A seed has few objects of each kind: 21 hits of the last layer whose field is computed, 14 lines, 8 pairs of a last
// and a first hit, 4 of them with stereo hits. Each step therefore packs what it keeps into rows, and the next step
// takes full vectors of rows: last hits, lines, pairs. A pair compares whole vectors of stereo hits. A hit, line or
// candidate has no branch of its own before it is better than the best candidate.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/tracks/downstream/search_ut.cuh"

namespace hlt {

/// Of at_slopes, the part that depends on ty alone.
template <bool odd>
struct downstream_function_at_ty {
    float first[n_bend_powers], second[n_bend_powers];

    downstream_function_at_ty(const float (&table)[n_bend_powers][n_tx_powers][n_ty_powers], float ty)
    {
        const float ty2 = ty * ty;
        for (uint32_t k = 0; k < n_bend_powers; ++k) {
            first[k] = table[k][0][0] + ty2 * (table[k][0][1] + ty2 * table[k][0][2]);
            second[k] = table[k][1][0] + ty2 * (table[k][1][1] + ty2 * table[k][1][2]);
        }
    }

    template <typename Real>
    __attribute__((always_inline)) Real operator()(const Real& tx, const Real& kink) const
    {
        const Real tx2 = tx * tx;
        bend_polynomial_of<Real> polynomial;
        for (uint32_t k = 0; k < n_bend_powers; ++k) {
            const bool odd_power = ((k & 1u) != 0u) != odd;
            polynomial.a[k] = (first[k] + tx2 * second[k]) * (odd_power ? tx : Real{} + 1.f);
        }
        return polynomial(kink);
    }
};

/// downstream_functions for many lines of one seed.
struct downstream_functions_in_lanes {
    downstream_function_at_ty<false> z_magnet;
    downstream_function_at_ty<true> y_slope, y_shift;

    downstream_functions_in_lanes(const downstream_field& field, float ty)
        : z_magnet(field.z_magnet, ty), y_slope(field.y_slope, ty), y_shift(field.y_shift, ty)
    {
    }
};

/// ut_bin_of for each lane.
inline __attribute__((always_inline)) uint_wide ut_bins_of(uint32_t layer, const float_wide& x)
{
    const float_wide none{}, last = none + static_cast<float>(n_ut_bins - 1u);
    float_wide bin = (x + 0.5f * ut_bin_width * static_cast<float>(n_ut_bins)) * (1.f / ut_bin_width);
    bin = last < bin ? last : bin;
    bin = bin > none ? bin : none;
    return (uint_wide) __builtin_convertvector(bin, int_wide) + layer * n_ut_bins;
}

/// Rows of numbers, kept by columns. There is room for one vector of rows and for what another one adds.
template <uint32_t n_reals, uint32_t n_integers>
struct packed_rows {
    float reals[n_reals][2u * n_wide];
    uint32_t integers[n_integers][2u * n_wide];
    uint32_t n;

    packed_rows() : n(0) {}

    __attribute__((always_inline)) void add(uint32_t chosen, const float_wide (&of_reals)[n_reals],
                                            const uint_wide (&of_integers)[n_integers])
    {
        for (uint32_t k = 0; k < n_reals; ++k) store_packed_wide(reals[k] + n, of_reals[k], chosen);
        for (uint32_t k = 0; k < n_integers; ++k) store_packed_wide(integers[k] + n, of_integers[k], chosen);
        n += static_cast<uint32_t>(__popc(chosen));
    }

    __attribute__((always_inline)) float_wide real(uint32_t column) const
    {
        float_wide lanes;
        load_wide(lanes, reals[column]);
        return lanes;
    }

    __attribute__((always_inline)) uint_wide integer(uint32_t column) const
    {
        uint_wide lanes;
        load_wide(lanes, integers[column]);
        return lanes;
    }

    /// Call `work(number of rows)` for each full vector of rows, and remove it.
    template <typename Work>
    __attribute__((always_inline)) void take_full(Work work)
    {
        if (n < n_wide) return;
        work(n_wide);
        n -= n_wide;
        for (auto& column : reals) std::memcpy(column, column + n_wide, sizeof column / 2u);
        for (auto& column : integers) std::memcpy(column, column + n_wide, sizeof column / 2u);
    }

    /// The same for the last rows.
    template <typename Work>
    __attribute__((always_inline)) void take_rest(Work work)
    {
        if (n != 0u) work(n);
        n = 0;
    }
};

/// downstream_search with lines in lanes.
template <typename Parameters>
struct downstream_search_in_lanes {
    using functions_of_seed = downstream_functions_in_lanes;
    using real = float_wide;

    const Parameters& p;
    const downstream_ut_hits& hits;
    const downstream_seed& seed;
    const downstream_functions_in_lanes& functions;
    uint32_t left;
    downstream_candidate best;  // not set to 0, which would take 2 % of the search

    bool all = true;
    packed_rows<4, 1> last_hits;  // x, z, y_begin, y_end; place
    packed_rows<9, 3> lines;      // line_of_last_hit without kink, used; place, bins of the window in the first layer
    packed_rows<2, 2> pairs;      // x_to_first, z; place, row of the line

    downstream_search_in_lanes(const Parameters& parameters, const downstream_ut_hits& ut_hits,
                               const downstream_seed& of_seed, const downstream_functions_in_lanes& of_field,
                               uint32_t max_pairs)
        : p(parameters), hits(ut_hits), seed(of_seed), functions(of_field), left(max_pairs)
    {
        best.chi2 = no_chi2;
    }

    static real load(const float* from, uint32_t there)
    {
        real lanes;
        load_wide_where(lanes, from, there);
        return lanes;
    }

    /// Bits of the hits from a place on whose strips reach a line.
    template <typename Line>
    __attribute__((always_inline)) uint32_t covering(uint32_t place, uint32_t there, const real& z, const Line& y,
                                                     const Line& ty, float margin) const
    {
        return bits_of(
            strips_reach(load(hits.y_begin + place, there), load(hits.y_end + place, there), z, y, ty, margin));
    }

    bool run()
    {
        const downstream_estimate estimate = estimate_of(p, functions, seed);
        if (!estimate.has_hits) return true;
        const uint32_t end = hits.end_of(3u, estimate.end_x);
        for (uint32_t place = hits.begin_of(3u, estimate.first_x); place < end; place += n_wide) {
            const uint32_t there = first_bits(end - place);
            const real z = load(hits.z + place, there);
            const real y_begin = load(hits.y_begin + place, there), y_end = load(hits.y_end + place, there);
            const uint32_t chosen =
                there & bits_of(strips_reach(y_begin, y_end, z, estimate.line.y, estimate.line.ty, estimate.y_margin));
            last_hits.add(chosen, {load(hits.x + place, there), z, y_begin, y_end}, {wide_numbers + place});
            last_hits.take_full([&](uint32_t n) { add_lines(n); });
        }
        last_hits.take_rest([&](uint32_t n) { add_lines(n); });
        lines.take_rest([&](uint32_t n) { add_pairs(n); });
        return all;
    }

    /// Make the lines through the first n of the last hits.
    void add_lines(uint32_t n)
    {
        const real x = last_hits.real(0), z = last_hits.real(1);
        downstream_line_of<real> line = line_through(*p.downstream_field, functions, seed, x, z);
        uint32_t chosen = first_bits(n) & bits_of(is_within_cuts(p, line, x, z));
        bend_in_y(functions, seed, line);
        const line_of_last_hit<real> last = with_windows(p, line, x, z);
        chosen &= bits_of(strips_reach(last_hits.real(2), last_hits.real(3), z, line.y, line.ty, last.y_window));
        const uint_wide place = wide_numbers < n ? last_hits.integer(0) : uint_wide{};
        const uint_wide used = words_at(reinterpret_cast<const uint32_t*>(hits.used), place * 4u);
        lines.add(chosen,
                  {last.line.x, line.tx, line.y, line.ty, last.z, last.bend, last.x_window, last.y_window, (real)used},
                  {place, ut_bins_of(0u, last.first_x), ut_bins_of(0u, last.end_x)});
        lines.take_full([&](uint32_t n_lines) { add_pairs(n_lines); });
    }

    /// Find the first hits of the first n lines.
    void add_pairs(uint32_t n)
    {
        for (uint32_t row = 0; row < n; ++row) {
            const auto column = [&](uint32_t k) { return lines.reals[k][row]; };
            const float x = column(0), tx = column(1), y = column(2), ty = column(3), z_of_last = column(4);
            const float bend = column(5), x_window = column(6), y_window = column(7);
            const uint32_t end = hits.bin_begin[lines.integers[2][row] + 1u];
            for (uint32_t place = hits.bin_begin[lines.integers[1][row]]; place < end; place += n_wide) {
                const uint32_t there = first_bits(end - place);
                const real z = load(hits.z + place, there);
                const real to_first = x_to_first(x, bend, load(hits.x + place, there), z);
                uint32_t near = there & covering(place, there, z, y, ty, y_window) &
                                bits_where<wide_comparison::at_most>(absolute(real(to_first + tx * (z - z_of_last))),
                                                                     real{} + x_window);
                const uint32_t n_near = static_cast<uint32_t>(__popc(near));
                if (n_near > left) {
                    near = lowest_bits(near, left);
                    all = false;
                }
                left -= min_of(n_near, left);
                pairs.add(near, {to_first, z}, {wide_numbers + place, uint_wide{} + row});
                pairs.take_full([&](uint32_t n_pairs) { compare_pairs(n_pairs); });
            }
        }
        pairs.take_rest([&](uint32_t n_pairs) { compare_pairs(n_pairs); });
    }

    /// The n lowest of some bits.
    static uint32_t lowest_bits(uint32_t bits, uint32_t n)
    {
        uint32_t lowest = 0;
        for (; n != 0u; --n, bits &= bits - 1u) lowest |= bits & (0u - bits);
        return lowest;
    }

    /// Search the stereo hits of the first n pairs.
    void compare_pairs(uint32_t n)
    {
        const uint_wide row = pairs.integer(1);
        const uint_wide place = wide_numbers < n ? pairs.integer(0) : uint_wide{};
        const auto of_line = [&](uint32_t column) { return picked(lines.real(column), row); };
        const line_of_last_hit<real> last{
            {of_line(0), of_line(1), of_line(2), of_line(3), {}}, of_line(4), of_line(5), {}, of_line(7), {}, {}};
        const real used = (real)words_at(reinterpret_cast<const uint32_t*>(hits.used), place * 4u);
        const line_of_pair<real> pair =
            through_pair(p, functions, seed, last, pairs.real(0), pairs.real(1), real(used + of_line(8)));
        uint32_t chosen = first_bits(n) & bits_of((pair.n_used <= static_cast<float>(p.max_used_ut_hits)) &
                                                  (pair.least_chi2 < p.max_chi2) & (pair.least_chi2 <= best.chi2));
        if (chosen == 0u) return;
        const stereo_windows<real> windows = stereo_windows_of(p, pair, best.chi2);
        const real columns[] = {pair.line.x,     pair.line.tx,     pair.line.y,  pair.line.ty,     pair.line.kink,
                                pair.bend,       pair.y_window,    pair.magnet,  pair.magnet_chi2, pair.n_used,
                                pair.least_chi2, windows.y_weight, windows.reach};
        constexpr uint32_t n_columns = sizeof columns / sizeof columns[0];
        float reals[n_columns][n_wide];
        uint32_t bins[2][2][n_wide];
        for (uint32_t k = 0; k < n_columns; ++k) store_wide(reals[k], columns[k]);
        for (uint32_t k = 0; k < 2u; ++k) {
            store_wide(bins[k][0], ut_bins_of(k + 1u, windows.first_x[k]));
            store_wide(bins[k][1], ut_bins_of(k + 1u, windows.end_x[k]));
        }
        for (; chosen != 0u; chosen &= chosen - 1u) {
            const uint32_t lane = lowest_bit(chosen);
            const auto column = [&](uint32_t k) { return reals[k][lane]; };
            if (column(10) > best.chi2) continue;
            uint32_t places[2][2];
            for (uint32_t k = 0; k < 2u; ++k) {
                places[k][0] = hits.bin_begin[bins[k][0][lane]];
                places[k][1] = hits.bin_begin[bins[k][1][lane] + 1u];
            }
            const line_of_pair<float> of_lane{{column(0), column(1), column(2), column(3), column(4)},
                                              column(5),
                                              column(6),
                                              column(7),
                                              column(8),
                                              column(9),
                                              column(10)};
            add_stereo(of_lane, places, column(11), column(12), pairs.integers[0][lane],
                       lines.integers[0][pairs.integers[1][lane]]);
        }
    }

    /// Try the pairs of stereo hits of a line; `places`: the first and the end of each stereo layer.
    __attribute__((always_inline)) void add_stereo(const line_of_pair<float>& pair, const uint32_t (&places)[2][2],
                                                   float y_weight, float reach, uint32_t first, uint32_t last)
    {
        const float dx_dy1 = p.downstream_field->ut_dx_dy[1], dx_dy2 = p.downstream_field->ut_dx_dy[2];
        const auto near_of = [&](uint32_t place, uint32_t there, const real& z, const real& distance) {
            return there & covering(place, there, z, pair.line.y, pair.line.ty, pair.y_window) &
                   bits_where<wide_comparison::less>(absolute(distance), real{} + reach);
        };
        for (uint32_t place1 = places[0][0]; place1 < places[0][1]; place1 += n_wide) {
            const uint32_t there1 = first_bits(places[0][1] - place1);
            const real z1 = load(hits.z + place1, there1);
            const real d1 = stereo_distance(pair, load(hits.x + place1, there1), z1, dx_dy1);
            const uint32_t near1 = near_of(place1, there1, z1, d1);
            if (near1 == 0u) continue;
            float d1_of[n_wide];
            store_wide(d1_of, d1);
            for (uint32_t place2 = places[1][0]; place2 < places[1][1]; place2 += n_wide) {
                const uint32_t there2 = first_bits(places[1][1] - place2);
                const real z2 = load(hits.z + place2, there2);
                const real d2 = stereo_distance(pair, load(hits.x + place2, there2), z2, dx_dy2);
                const uint32_t near2 = near_of(place2, there2, z2, d2);
                if (near2 == 0u) continue;
                for (uint32_t left1 = near1; left1 != 0u; left1 &= left1 - 1u) {
                    const uint32_t lane = lowest_bit(left1);
                    const stereo_pair<real> stereo =
                        stereo_pair_of(d1_of[lane], d2, pair.magnet_chi2, y_weight, dx_dy1);
                    add_candidates(pair, stereo, z2, there2, near2, first, place1 + lane, place2, last);
                }
            }
        }
    }

    /// Keep the best of the candidates with one hit of the first stereo layer and the hits from `place2` on of the
    /// second one, if it is better than the best one so far.
    __attribute__((always_inline)) void add_candidates(const line_of_pair<float>& pair, const stereo_pair<real>& stereo,
                                                       const real& z2, uint32_t there2, uint32_t near2, uint32_t first,
                                                       uint32_t place1, uint32_t place2, uint32_t last)
    {
        const real n_used = pair.n_used + hits.used[place1] + load(hits.used + place2, there2);
        const real chi2 = stereo.chi2_without_used + p.used_hit_penalty * n_used;
        uint32_t good = near2 & bits_of((absolute(stereo.stereo) < p.stereo_window) & (chi2 < p.max_chi2) &
                                        (chi2 <= best.chi2) & (n_used <= static_cast<float>(p.max_used_ut_hits)));
        if (good == 0u) return;
        const real y = pair.line.y + stereo.y;
        good &= covering(place2, there2, z2, y, real{} + pair.line.ty, p.y_margin);
        for (const uint32_t place : {first, place1, last})
            good &= bits_of(strips_reach(real{} + hits.y_begin[place], real{} + hits.y_end[place],
                                         real{} + hits.z[place], y, real{} + pair.line.ty, p.y_margin));
        if (good == 0u) return;
        float chi2_of[n_wide], y_of[n_wide], stereo_of[n_wide], used_of[n_wide];
        store_wide(chi2_of, chi2);
        store_wide(y_of, stereo.y);
        store_wide(stereo_of, stereo.stereo);
        store_wide(used_of, n_used);
        for (; good != 0u; good &= good - 1u) {
            const uint32_t lane = lowest_bit(good);
            downstream_candidate found{pair.line,       chi2_of[lane], pair.magnet, y_of[lane],
                                       stereo_of[lane], used_of[lane], {}};
            found.line.y += found.y_distance;
            const uint32_t places[n_long_ut_layers] = {first, place1, place2 + lane, last};
            for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer) found.hits[layer] = hits.order[places[layer]];
            if (found.chi2 < best.chi2 || (found.chi2 == best.chi2 && found.is_before(best))) best = found;
        }
    }
};

}  // namespace hlt

HLT_CPU_FORM(downstream_search_ut)
{
    if (!hlt::compares_eight_lanes) return downstream_search_ut(p, dim3{event, 1, 1});
    hlt::search_downstream<hlt::downstream_search_in_lanes<downstream_search_ut_parameters>>(p, event);
}
