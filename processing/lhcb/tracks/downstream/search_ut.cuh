// The UT hits that continue each SciFi seed without a long track best (docs/physics/downstream-tracks.md).
//
// A hit of the last UT layer and the seed give the kink in the magnet, and with it the line in the UT. Hits of the
// first layer near this line correct it. Hits of both stereo layers must agree on y, with each other and with the seed.
// The candidate with the smallest chi2 is kept. A hit of a long track adds to chi2; a candidate with more than
// max_used_ut_hits of them is none, nor is a seed with more than max_used_scifi_hits.
// In:  scifi_seeds, ut_hits, long_tracks, downstream_field. Out: downstream_candidates, at the place of the seed.
// One block per event; threads stride over hits and seeds. Each thread writes only candidates of its seeds. On the CPU
// the lines through eight or sixteen hits of the last layer are computed at once.
// Bounds: order, ut_x and ut_z are loaded up to ut_hit_padding - 1 places behind the last hit. The seeds of an event
// share max_pairs pairs of a last and a first hit equally; a seed with more flags its
// event and keeps the best candidate of its share. Of bins of x with more than max_in_ut_bin hits none is used.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/downstream/generated/downstream_field_types.h"
#include "lhcb/tracks/downstream/generated/downstream_search_ut.h"
#include "lhcb/tracks/matching/ut_confirmation.cuh"
#if !HLT_ON_GPU
#include "framework/device/wide_lanes.h"
#endif

namespace hlt {

// Errors of true tracks: a constant and a part that grows with the kink, mm.
constexpr float magnet_error = 0.6f, magnet_error_of_kink = 7.f;
constexpr float downstream_y_error = 5.f, downstream_y_error_of_kink = 20.f;
constexpr float stereo_error = 0.2f;
// A wide range of the plane of the kick, for the first estimate of where a hit may lie: mm, and mm for a unit of slope.
constexpr float magnet_range = 60.f, magnet_range_of_tx = 200.f;

/// A seed at z_scifi_reference.
struct downstream_seed {
    float x, tx, y, ty;
};

/// The line of a seed in the UT: mm and slopes at z_downstream_ut. `Real`: float, or a line in each lane of a vector.
template <typename Real>
struct downstream_line_of {
    Real x, tx, y, ty, kink;
};

using downstream_line = downstream_line_of<float>;

/// A function of downstream_field at the ty of a seed, for lines of many tx.
struct downstream_function {
#if HLT_ON_GPU
    const float (&table)[n_bend_powers][n_tx_powers][n_ty_powers];
    float ty;

    __device__ bend_polynomial at(float tx, bool odd) const { return at_slopes(table, tx, ty, odd); }
#else
    // Of at_slopes, what depends on ty alone.
    float first[n_bend_powers], second[n_bend_powers];

    downstream_function(const float (&table)[n_bend_powers][n_tx_powers][n_ty_powers], float ty)
    {
        const float ty2 = ty * ty;
        for (uint32_t k = 0; k < n_bend_powers; ++k) {
            first[k] = table[k][0][0] + ty2 * (table[k][0][1] + ty2 * table[k][0][2]);
            second[k] = table[k][1][0] + ty2 * (table[k][1][1] + ty2 * table[k][1][2]);
        }
    }

    template <typename Real>
    bend_polynomial_of<Real> at(const Real& tx, bool odd) const
    {
        const Real tx2 = tx * tx;
        bend_polynomial_of<Real> polynomial;
        for (uint32_t k = 0; k < n_bend_powers; ++k) {
            const bool is_odd = ((k & 1u) != 0u) != odd;
            polynomial.a[k] = (first[k] + tx2 * second[k]) * (is_odd ? tx : Real{} + 1.f);
        }
        return polynomial;
    }
#endif
};

struct downstream_candidate {
    downstream_line line;
    float chi2, magnet_distance, y_distance, stereo_distance, used_ut_hits;
    uint32_t hits[n_long_ut_layers];
};

/// The search for the hits of one seed. `Parameters`: those of the kernel.
template <typename Parameters>
struct downstream_search {
    const Parameters& p;
    const binned_ut_hits& hits;
    const uint8_t* used;
    const downstream_seed& seed;
    downstream_function z_magnet, y_slope, y_shift;
    uint32_t left;
    downstream_candidate best;

    __device__ static float squared(float value) { return value * value; }

    /// The line through a hit of the last layer, x not known yet; y and ty are those of the seed.
    template <typename Real>
    __device__ downstream_line_of<Real> line_of(const Real& x, const Real& z) const
    {
        Real at = Real{} + p.downstream_field->z_magnet[0][0][0], tx{}, kink{};
        for (uint32_t step = 0; step < 2u; ++step) {
            if (step == 1u) at = z_magnet.at(tx, false)(kink);
            const Real x_magnet = seed.x + seed.tx * (at - z_scifi_reference);
            tx = (x_magnet - x) / (at - z);
            kink = seed.tx - tx;
        }
        return {Real{}, tx, Real{} + seed.y, Real{} + seed.ty, kink};
    }

    /// Change y and ty of a line to those in the UT.
    template <typename Real>
    __device__ void bend_in_y(downstream_line_of<Real>& line) const
    {
        line.ty = seed.ty / (1.f + line.kink * y_slope.at(line.tx, true)(line.kink));
        const Real shift = y_shift.at(line.tx, true)(line.kink);
        line.y = seed.y + line.ty * (z_downstream_ut - z_scifi_reference - line.kink * shift);
    }

    /// Call `work` for the hits of the last layer around x, and the lines through them.
    template <typename Work>
    __device__ void for_lines(float x, float reach, Work work) const
    {
#if HLT_ON_GPU
        for_hits(3u, x, reach, [&](uint32_t last) {
            const float at_x = hits.x[last], at_z = hits.z[last];
            downstream_line line = line_of(at_x, at_z);
            const float size = absolute(line.kink);
            // Comparisons with nan are false.
            if (!(absolute(at_x - line.tx * at_z) < p.max_origin_x && size > p.min_kink && size < p.max_kink)) return;
            bend_in_y(line);
            work(last, line);
        });
#else
        const uint32_t end = hits.bin_begin[ut_bin_of(3u, x + reach) + 1u];
        for (uint32_t i = hits.bin_begin[ut_bin_of(3u, x - reach)]; i < end; i += n_wide) {
            const uint32_t there = first_bits(end - i);
            float_wide at_x, at_z;
            load_wide_where(at_x, hits.ordered_x + i, there);
            load_wide_where(at_z, hits.ordered_z + i, there);
            downstream_line_of<float_wide> lines = line_of(at_x, at_z);
            const float_wide size = absolute(lines.kink), origin = absolute(at_x - lines.tx * at_z);
            // Hits of crowded bins are moved out of reach.
            uint32_t chosen =
                there & bits_of((origin < p.max_origin_x) & (size > p.min_kink) & (size < p.max_kink) & (at_x < 1e5f));
            if (chosen == 0u) continue;
            bend_in_y(lines);
            for (; chosen != 0u; chosen &= chosen - 1u) {
                const uint32_t lane = lowest_bit(chosen);
                work(static_cast<uint32_t>(hits.order[i + lane]),
                     downstream_line{0.f, lines.tx[lane], lines.y[lane], lines.ty[lane], lines.kink[lane]});
            }
        }
#endif
    }

    __device__ float y_window_of(float kink) const { return p.y_window + p.y_window_of_kink * absolute(kink); }

    /// True if the strip of a hit reaches the line, `margin` (mm) included.
    __device__ bool covers(uint32_t hit, const downstream_line& line, float margin) const
    {
        const float y = line.y + line.ty * (hits.z[hit] - z_downstream_ut);
        return hits.y_begin[hit] - margin < y && y < hits.y_end[hit] + margin;
    }

    /// Call `work` for the hits of a layer around x.
    template <typename Work>
    __device__ void for_hits(uint32_t layer, float x, float reach, Work work) const
    {
        const uint32_t end = hits.bin_begin[ut_bin_of(layer, x + reach) + 1u];
        for (uint32_t i = hits.bin_begin[ut_bin_of(layer, x - reach)]; i < end; ++i) {
            // Hits of crowded bins are moved out of reach.
            if (hits.ordered_x[i] < 1e5f) work(static_cast<uint32_t>(hits.order[i]));
        }
    }

    /// Returns false if there are more pairs than `left`.
    __device__ bool run()
    {
        const float z_central = p.downstream_field->z_magnet[0][0][0];
        const float x_magnet = seed.x + seed.tx * (z_central - z_scifi_reference);
        const float share = z_downstream_ut / z_central;
        const float reach = (p.max_origin_x + magnet_range + magnet_range_of_tx * absolute(seed.tx)) * (1.f - share) +
                            share * magnet_range_of_tx * absolute(seed.tx);
        bool all = true;
        for_lines(share * x_magnet, reach, [&](uint32_t last, const downstream_line& line) {
            const float x = hits.x[last], z = hits.z[last], size = absolute(line.kink);
            const float y_window = y_window_of(line.kink);
            if (!covers(last, line, y_window)) return;
            const float bend = p.downstream_field->ut_curve * line.kink;
            const float straight = x - bend * squared(z - z_downstream_ut);
            const float window = p.x_window + p.x_window_of_kink * size;
            const float z_first = 2327.5f;
            const float at_first = straight + line.tx * (z_first - z) + bend * squared(z_first - z_downstream_ut);
            for_hits(0u, at_first, window + 12.f * (absolute(line.tx) + size * 0.02f) + 1.f, [&](uint32_t first) {
                const float to_first = straight - (hits.x[first] - bend * squared(hits.z[first] - z_downstream_ut));
                if (!(absolute(to_first + line.tx * (hits.z[first] - z)) <= window)) return;
                if (!covers(first, line, y_window)) return;
                if (left == 0u) {
                    all = false;
                    return;
                }
                --left;
                downstream_line corrected = line;
                corrected.tx = to_first / (z - hits.z[first]);
                corrected.x = straight + corrected.tx * (z_downstream_ut - z);
                corrected.kink = seed.tx - corrected.tx;
                add_stereo(corrected, bend, y_window, first, last);
            });
        });
        return all;
    }

    /// Try the pairs of stereo hits of a line.
    __device__ void add_stereo(const downstream_line& line, float bend, float y_window, uint32_t first, uint32_t last)
    {
        const downstream_field& field = *p.downstream_field;
        const float size = absolute(line.kink);
        const float z_kick = z_magnet.at(line.tx, false)(line.kink);
        const float magnet =
            seed.x + seed.tx * (z_kick - z_scifi_reference) - line.x - line.tx * (z_kick - z_downstream_ut);
        const float magnet_chi2 = squared(magnet / (magnet_error + magnet_error_of_kink * size));
        if (!(magnet_chi2 < min_of(p.max_chi2, best.chi2))) return;
        const float y_weight = 1.f / (downstream_y_error + downstream_y_error_of_kink * size);
        const auto distance = [&](uint32_t hit, float dx_dy) {
            const float dz = hits.z[hit] - z_downstream_ut;
            return hits.x[hit] + dx_dy * (line.y + line.ty * dz) - line.x - line.tx * dz - bend * squared(dz);
        };
        // Sensors are up to 10 mm before or behind the middle of their layer.
        const auto place = [&](float z, float dx_dy) {
            const float dz = z - z_downstream_ut;
            return line.x + line.tx * dz + bend * squared(dz) - dx_dy * (line.y + line.ty * dz);
        };
        const float depth = 12.f * (absolute(line.tx) + absolute(line.ty)) + 1.f;
        const float dx_dy1 = field.ut_dx_dy[1], dx_dy2 = field.ut_dx_dy[2];
        const float reach = absolute(dx_dy1) * y_window;
        for_hits(1u, place(2372.5f, dx_dy1), reach + depth, [&](uint32_t u) {
            const float d1 = distance(u, dx_dy1);
            if (!(absolute(d1) < reach) || !covers(u, line, y_window)) return;
            for_hits(2u, place(2597.5f, dx_dy2) - d1, p.stereo_window + depth, [&](uint32_t v) {
                const float d2 = distance(v, dx_dy2), stereo = d1 + d2;
                if (!(absolute(d2) < reach && absolute(stereo) < p.stereo_window)) return;
                const float y = (d2 - d1) / (2.f * dx_dy1);
                const uint32_t n_used = used[first] + used[u] + used[v] + used[last];
                const float n_used_hits = static_cast<float>(n_used);
                const float chi2 = magnet_chi2 + squared(y * y_weight) + squared(stereo / stereo_error) +
                                   p.used_hit_penalty * n_used_hits;
                if (n_used > p.max_used_ut_hits || !(chi2 < p.max_chi2) || chi2 > best.chi2) return;
                downstream_candidate found{line, chi2, magnet, y, stereo, n_used_hits, {first, u, v, last}};
                found.line.y += y;
                for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer)
                    if (!covers(found.hits[layer], found.line, p.y_margin)) return;
                if (chi2 < best.chi2 || is_before(found)) best = found;
            });
        });
    }

    /// True if the hits of a candidate come before those of the best one: candidates of one chi2 need an order.
    __device__ bool is_before(const downstream_candidate& found) const
    {
        for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer)
            if (found.hits[layer] != best.hits[layer]) return found.hits[layer] < best.hits[layer];
        return false;
    }
};

/// Charge over momentum (1/MeV) of a line with a kink.
__device__ float downstream_qop(const downstream_field& field, const downstream_line& line)
{
    const float ty_behind = line.ty * (1.f + line.kink * at_slopes(field.y_slope, line.tx, line.ty, true)(line.kink));
    const float change = sine_of(line.tx + line.kink, ty_behind) - sine_of(line.tx, line.ty);
    const float kick = at_slopes(field.kick, line.tx, line.ty, false)(line.kink);
    return field.polarity * change / kick;
}

}  // namespace hlt

HLT_KERNEL(downstream_search_ut)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first_ut = p.ut_hits.first(event), n_ut = p.ut_hits.count[event];
    const uint32_t first_seed = p.scifi_seeds.first(event), n_seeds = p.scifi_seeds.count[event];
    const uint32_t first_long = p.long_tracks.first(event), n_long = p.long_tracks.count[event];
    uint8_t* const scifi_used = p.scifi_hits_scratch.scifi_used + p.scifi_hits_scratch.first(event);
    uint8_t* const ut_used = p.ut_hits_scratch.ut_used + first_ut;
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t bins[hlt::n_all_ut_bins + 1u];

    for (uint32_t i = threadIdx.x; i < n_ut; i += blockDim.x) ut_used[i] = 0;
    for (uint32_t i = threadIdx.x; i < p.scifi_hits.count[event]; i += blockDim.x) scifi_used[i] = 0;
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n_long * hlt::max_scifi_track_hits; i += blockDim.x) {
        const uint32_t hit = p.long_tracks.hits[first_long * hlt::max_scifi_track_hits + i];
        if (hit != hlt::no_scifi_hit) scifi_used[hit] = 1;
    }
    for (uint32_t i = threadIdx.x; i < n_long * hlt::n_long_ut_layers; i += blockDim.x) {
        const uint32_t hit = p.long_tracks.ut_hits[first_long * hlt::n_long_ut_layers + i];
        if (hit != hlt::no_ut_hit) ut_used[hit] = 1;
    }
    hlt::block_barrier();
    const hlt::binned_ut_hits hits{p.ut_hits.x + first_ut,
                                   p.ut_hits.z + first_ut,
                                   p.ut_hits.y_begin + first_ut,
                                   p.ut_hits.y_end + first_ut,
                                   p.ut_hits_scratch.ut_order + first_ut,
                                   p.ut_hits_scratch.ut_x + first_ut,
                                   p.ut_hits_scratch.ut_z + first_ut,
                                   bins};
    if (n_seeds != 0u) hlt::bin_ut_hits(hits, n_ut, sums);

    const uint32_t max_pairs = p.max_pairs / hlt::max_of(n_seeds, 1u);
    for (uint32_t number = threadIdx.x; number < n_seeds; number += blockDim.x) {
        const uint32_t at = first_seed + number;
        p.downstream_candidates.found[at] = 0;
        uint32_t n_used = 0;
        for (uint32_t k = 0; k < hlt::max_scifi_track_hits; ++k) {
            const uint32_t hit = p.scifi_seeds.hits[at * hlt::max_scifi_track_hits + k];
            if (hit != hlt::no_scifi_hit) n_used += scifi_used[hit];
        }
        if (n_used > p.max_used_scifi_hits) continue;
        const float ty = p.scifi_seeds.ty[at];
        const hlt::seed_curve curve =
            hlt::seed_curve::of_state(p.scifi_seeds.x[at], p.scifi_seeds.tx[at], p.scifi_seeds.curvature[at]);
        const hlt::downstream_seed seed{curve.a, curve.b,
                                        p.scifi_seeds.y[at] - ty * (hlt::z_end_scifi - hlt::z_scifi_reference), ty};
        const hlt::downstream_field& field = *p.downstream_field;
        hlt::downstream_search<downstream_search_ut_parameters> search{
            p, hits, ut_used, seed, {field.z_magnet, ty}, {field.y_slope, ty}, {field.y_shift, ty}, max_pairs, {}};
        search.best.chi2 = 3e38f;
        if (!search.run()) atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::overflow));
        const hlt::downstream_candidate& best = search.best;
        if (!(best.chi2 < 3e38f)) continue;
        p.downstream_candidates.found[at] = 1;
        for (uint32_t layer = 0; layer < hlt::n_long_ut_layers; ++layer)
            p.downstream_candidates.ut_hits[at * hlt::n_long_ut_layers + layer] =
                static_cast<uint16_t>(best.hits[layer]);
        p.downstream_candidates.x[at] = best.line.x;
        p.downstream_candidates.y[at] = best.line.y;
        p.downstream_candidates.tx[at] = best.line.tx;
        p.downstream_candidates.ty[at] = best.line.ty;
        p.downstream_candidates.qop[at] = hlt::downstream_qop(*p.downstream_field, best.line);
        p.downstream_candidates.chi2[at] = best.chi2;
        p.downstream_candidates.magnet_distance[at] = best.magnet_distance;
        p.downstream_candidates.y_distance[at] = best.y_distance;
        p.downstream_candidates.stereo_distance[at] = best.stereo_distance;
        p.downstream_candidates.used_ut_hits[at] = best.used_ut_hits;
    }
}
