// The UT hits that continue each SciFi seed without a long track best (docs/physics/downstream-tracks.md).
//
// A hit of the last UT layer and the seed give the kink in the magnet, and with it the line in the UT. Hits of the
// first layer near this line correct it. Hits of both stereo layers must agree on y, with each other and with the seed.
// The candidate with the smallest chi2 is kept. A hit of a long track adds to chi2; a candidate with more than
// max_used_ut_hits of them is none, nor is a seed with more than max_used_scifi_hits.
// In:  scifi_seeds, ut_hits with their order by bins, long_tracks, downstream_field.
// Out: downstream_candidates, at the place of the seed.
// One block per event; threads stride over hits and seeds. Each thread writes only candidates of its seeds. The CPU
// form compares eight or sixteen hits at once. Bounds: the columns in the order of bins are loaded up to ut_hit_padding
// - 1 places behind the last hit. The seeds of an event share max_pairs pairs of a last and a first hit equally; a seed
// with more flags its event and keeps the best candidate of its share. Of bins of x with more than max_in_ut_bin hits
// none is used.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/downstream/generated/downstream_search_ut.h"
#include "lhcb/tracks/downstream/ut_lines.cuh"
#include "lhcb/tracks/matching/ut_confirmation.cuh"

namespace hlt {

// Errors of true tracks: a constant and a part that grows with the kink, mm.
constexpr float magnet_error = 0.6f, magnet_error_of_kink = 7.f;
constexpr float downstream_y_error = 5.f, downstream_y_error_of_kink = 20.f;
constexpr float stereo_error = 0.2f;
// Middle of each layer; sensors are up to 10 mm before or behind it, the reach of slopes has some reserve.
constexpr float ut_layer_z[n_long_ut_layers] = {2327.5f, 2372.5f, 2597.5f, 2642.5f};
constexpr float ut_layer_depth = 12.f;
// Lines within max_origin_x differ from the line through x = 0 in kink, thus in plane of the kick and in y. These are
// wide limits of the differences in the last layer: mm, for a unit of kink, and for a unit of ty.
constexpr float last_x_margin = 5.f, last_x_margin_of_kink = 30.f;
constexpr float last_y_margin = 7.f, last_y_margin_of_ty = 150.f;

/// The UT hits of an event, and columns in the order of their bins, as binned_ut_hits.
struct downstream_ut_hits {
    const float *x, *z, *y_begin, *y_end;
    const uint16_t* order;
    const float *ordered_x, *ordered_z;
    const uint32_t* bin_begin;
    float *ordered_y_begin, *ordered_y_end;
};

struct downstream_candidate {
    downstream_line line;
    float chi2, magnet_distance, y_distance, stereo_distance, used_ut_hits;
    uint32_t hits[n_long_ut_layers];
};

/// Hits one by one: the lanes of a search without vectors.
struct single_hits {
    using real = float;

    __device__ static float load(const float* from, uint32_t) { return *from; }

    /// Call `work` for each place where `test` is true, in order. `test(place, there)`: bits of the hits from a place
    /// on, for lanes with a bit in `there`.
    template <typename Test, typename Work>
    __device__ static void for_places(uint32_t begin, uint32_t end, Test test, Work work)
    {
        for (uint32_t place = begin; place < end; ++place)
            if (test(place, 1u) != 0u) work(place);
    }

    /// Call `work(place, there)` for blocks of places.
    template <typename Work>
    __device__ static void for_blocks(uint32_t begin, uint32_t end, Work work)
    {
        for (uint32_t place = begin; place < end; ++place) work(place, 1u);
    }

    /// Call `work(group, there)` for groups of hits where `test` is true, in order.
    template <typename Test, typename Work>
    __device__ static void for_groups(const downstream_ut_hits& hits, uint32_t begin, uint32_t end, Test test,
                                      Work work)
    {
        for_places(begin, end, test, [&](uint32_t place) { work(single_hits(hits, place), 1u); });
    }

    // A group of one hit.
    float x, z, y_begin, y_end;
    uint32_t place;

    __device__ single_hits(const downstream_ut_hits& hits, uint32_t at)
        : x(hits.ordered_x[at]),
          z(hits.ordered_z[at]),
          y_begin(hits.ordered_y_begin[at]),
          y_end(hits.ordered_y_end[at]),
          place(at)
    {
    }
    __device__ uint32_t place_of(uint32_t) const { return place; }

    __device__ static uint32_t bits(bool comparison) { return comparison ? 1u : 0u; }

    template <typename Work>
    __device__ static void for_lanes(uint32_t chosen, Work work)
    {
        if (chosen != 0u) work(0u);
    }

    /// The values of lanes.
    struct values {
        float value;

        __device__ explicit values(float of_lane) : value(of_lane) {}
        __device__ float operator[](uint32_t) const { return value; }
    };
};

/// The search for the hits of one seed. `Parameters`: those of the kernel; `Functions`: downstream_functions or
/// another form of it; `Lanes`: how many hits are compared at once.
template <typename Parameters, typename Functions, typename Lanes>
struct downstream_search {
    using real = typename Lanes::real;
    using values = typename Lanes::values;

    const Parameters& p;
    const downstream_ut_hits& hits;
    const uint8_t* used;
    const downstream_seed& seed;
    const Functions& functions;
    uint32_t left;
    downstream_candidate best;

    __device__ float y_window_of(float kink) const { return p.y_window + p.y_window_of_kink * absolute(kink); }

    /// Whether the strips of hits from a place on reach the line, `margin` (mm) included.
    __device__ auto cover(uint32_t place, uint32_t there, const real& z, const downstream_line& line,
                          float margin) const
    {
        const real y = line.y + line.ty * (z - z_downstream_ut);
        return (Lanes::load(hits.ordered_y_begin + place, there) - margin < y) &
               (y < Lanes::load(hits.ordered_y_end + place, there) + margin);
    }

    /// True if the strip of a hit reaches the line, `margin` (mm) included.
    __device__ bool covers(uint32_t hit, const downstream_line& line, float margin) const
    {
        const float y = line.y + line.ty * (hits.z[hit] - z_downstream_ut);
        return hits.y_begin[hit] - margin < y && y < hits.y_end[hit] + margin;
    }

    __device__ uint32_t begin_of(uint32_t layer, float x) const { return hits.bin_begin[ut_bin_of(layer, x)]; }
    __device__ uint32_t end_of(uint32_t layer, float x) const { return hits.bin_begin[ut_bin_of(layer, x) + 1u]; }

    /// Returns false if there are more pairs than `left`.
    __device__ bool run()
    {
        // The line through x = 0 at z = 0.
        const float z_central = p.downstream_field->z_magnet[0][0][0];
        downstream_line middle{};
        middle.tx = seed.x_at(z_central) / z_central;
        middle.kink = seed.tx - middle.tx;
        const float z_kick = functions.z_magnet(middle.tx, middle.kink);
        bend_in_y(functions, seed, middle);
        const float share = ut_layer_z[3] / z_kick, size = absolute(middle.kink);
        // Other lines have kinks within max_origin_x / z of it.
        if (size > p.max_kink + 2.f * p.max_origin_x / z_kick) return true;
        const float x = share * seed.x_at(z_kick);
        const float reach = p.max_origin_x * (1.f - share) + last_x_margin + last_x_margin_of_kink * size +
                            ut_layer_depth * absolute(middle.tx);
        const float y_margin = y_window_of(middle.kink) + last_y_margin + last_y_margin_of_ty * absolute(seed.ty);
        bool all = true;
        const auto is_near = [&](uint32_t place, uint32_t there) {
            return there &
                   Lanes::bits(cover(place, there, Lanes::load(hits.ordered_z + place, there), middle, y_margin));
        };
        Lanes::for_groups(
            hits, begin_of(3u, x - reach), end_of(3u, x + reach), is_near, [&](const auto& group, uint32_t there) {
                downstream_line_of<real> lines = line_through(*p.downstream_field, functions, seed, group.x, group.z);
                const real sizes = absolute(lines.kink), origins = absolute(group.x - lines.tx * group.z);
                // Comparisons with nan are false. Hits of crowded bins are out of reach of every line.
                uint32_t chosen =
                    there & Lanes::bits((origins < p.max_origin_x) & (sizes > p.min_kink) & (sizes < p.max_kink));
                if (chosen == 0u) return;
                bend_in_y(functions, seed, lines);
                const real y = lines.y + lines.ty * (group.z - z_downstream_ut);
                const real y_windows = p.y_window + p.y_window_of_kink * sizes;
                chosen &= Lanes::bits((group.y_begin - y_windows < y) & (y < group.y_end + y_windows));
                const real bends = p.downstream_field->ut_curve * lines.kink;
                const real straight = group.x - bends * squared(group.z - z_downstream_ut);
                const real windows = p.x_window + p.x_window_of_kink * sizes;
                const real middles =
                    straight + lines.tx * (ut_layer_z[0] - group.z) + bends * squared(ut_layer_z[0] - z_downstream_ut);
                const real reaches = windows + ut_layer_depth * (absolute(lines.tx) + 0.02f * sizes) + 0.1f;
                const values tx(lines.tx), line_y(lines.y), ty(lines.ty), kink(lines.kink), x_of(straight),
                    window(windows), y_window(y_windows), bend(bends), middle_of(middles), reach_of(reaches);
                Lanes::for_lanes(chosen, [&](uint32_t lane) {
                    const downstream_line line{x_of[lane], tx[lane], line_y[lane], ty[lane], kink[lane]};
                    all &= add_first(line, hits.order[group.place_of(lane)], bend[lane], window[lane], y_window[lane],
                                     middle_of[lane] - reach_of[lane], middle_of[lane] + reach_of[lane]);
                });
            });
        return all;
    }

    /// Try the hits of the first layer between two x, near a line through a hit of the last one; the x of the line is
    /// that of the hit without `bend`. Returns false if there are more pairs than `left`.
    __device__ bool add_first(const downstream_line& line, uint32_t last, float bend, float window, float y_window,
                              float lowest, float highest)
    {
        const float z = hits.z[last];
        const auto to_first = [&](const auto& at_x, const auto& at_z) {
            return line.x - (at_x - bend * squared(at_z - z_downstream_ut));
        };
        bool all = true;
        const auto is_near = [&](uint32_t place, uint32_t there) {
            const real at_z = Lanes::load(hits.ordered_z + place, there);
            const real distance = to_first(Lanes::load(hits.ordered_x + place, there), at_z) + line.tx * (at_z - z);
            return there & Lanes::bits((absolute(distance) <= window) & cover(place, there, at_z, line, y_window));
        };
        Lanes::for_places(begin_of(0u, lowest), end_of(0u, highest), is_near, [&](uint32_t place) {
            if (left == 0u) {
                all = false;
                return;
            }
            --left;
            const uint32_t first = hits.order[place];
            downstream_line corrected = line;
            corrected.tx = to_first(hits.x[first], hits.z[first]) / (z - hits.z[first]);
            corrected.x = line.x + corrected.tx * (z_downstream_ut - z);
            corrected.kink = seed.tx - corrected.tx;
            add_stereo(corrected, bend, y_window, first, last);
        });
        return all;
    }

    /// Try the pairs of stereo hits of a line.
    __device__ void add_stereo(const downstream_line& line, float bend, float y_window, uint32_t first, uint32_t last)
    {
        // Hits that long tracks have add to chi2, whatever the stereo hits are.
        const uint32_t n_used = static_cast<uint32_t>(used[first]) + used[last];
        if (n_used > p.max_used_ut_hits) return;
        const float size = absolute(line.kink);
        const float z_kick = functions.z_magnet(line.tx, line.kink);
        const float magnet = seed.x_at(z_kick) - line.x - line.tx * (z_kick - z_downstream_ut);
        const float magnet_chi2 = squared(magnet / (magnet_error + magnet_error_of_kink * size));
        const float least_chi2 = magnet_chi2 + p.used_hit_penalty * static_cast<float>(n_used);
        if (!(least_chi2 < p.max_chi2) || least_chi2 > best.chi2) return;
        const float y_weight = 1.f / (downstream_y_error + downstream_y_error_of_kink * size);
        const auto distance = [&](const auto& x, const auto& z, float dx_dy) {
            const auto dz = z - z_downstream_ut;
            return x + dx_dy * (line.y + line.ty * dz) - line.x - line.tx * dz - bend * squared(dz);
        };
        // x of a layer where the distance is 0.
        const auto middle = [&](float z, float dx_dy) { return -distance(0.f, z, dx_dy); };
        const float depth = ut_layer_depth * (absolute(line.tx) + 0.1f * absolute(line.ty) + 0.02f * size) + 0.1f;
        const float dx_dy1 = p.downstream_field->ut_dx_dy[1], dx_dy2 = p.downstream_field->ut_dx_dy[2];
        // A stereo hit farther than this has a chi2 above that of the best candidate. The errors of rounding are below
        // the additions.
        const float left_chi2 = min_of(p.max_chi2, best.chi2) - least_chi2 + 1e-3f;
        const float stereo_reach2 = squared(0.5f * stereo_error) + squared(dx_dy1 / y_weight);
        const float reach = min_of(absolute(dx_dy1) * y_window, 1.0001f * sqrtf(left_chi2 * stereo_reach2));
        const float x1 = middle(ut_layer_z[1], dx_dy1), x2 = middle(ut_layer_z[2], dx_dy2);
        const auto is_near = [&](uint32_t place, uint32_t there) {
            const real z = Lanes::load(hits.ordered_z + place, there);
            const real d1 = distance(Lanes::load(hits.ordered_x + place, there), z, dx_dy1);
            return there & Lanes::bits((absolute(d1) < reach) & cover(place, there, z, line, y_window));
        };
        const float wide = reach + depth, y_of_stereo = 0.5f / dx_dy1;
        const uint32_t begin1 = begin_of(1u, x1 - wide), end1 = end_of(1u, x1 + wide);
        Lanes::for_blocks(begin_of(2u, x2 - wide), end_of(2u, x2 + wide), [&](uint32_t place2, uint32_t there) {
            const real z2 = Lanes::load(hits.ordered_z + place2, there);
            const real d2 = distance(Lanes::load(hits.ordered_x + place2, there), z2, dx_dy2);
            const uint32_t near =
                there & Lanes::bits((absolute(d2) < reach) & cover(place2, there, z2, line, y_window));
            if (near == 0u) return;
            Lanes::for_places(begin1, end1, is_near, [&](uint32_t place1) {
                const uint32_t u = hits.order[place1];
                const float d1 = distance(hits.x[u], hits.z[u], dx_dy1);
                const real stereo = d1 + d2, y = (d2 - d1) * y_of_stereo;
                const real least = magnet_chi2 + squared(y * y_weight) + squared(stereo * (1.f / stereo_error));
                const uint32_t good = near & Lanes::bits((absolute(stereo) < p.stereo_window) & (least < p.max_chi2) &
                                                         (least <= best.chi2));
                if (good == 0u) return;
                const values of_least(least), of_y(y), of_stereo(stereo);
                Lanes::for_lanes(good, [&](uint32_t lane) {
                    const uint32_t v = hits.order[place2 + lane];
                    add_candidate(line, {first, u, v, last}, of_least[lane], magnet, of_y[lane], of_stereo[lane]);
                });
            });
        });
    }

    /// Keep a candidate that is better than the best one. `least`: its chi2 without the term of used hits.
    __device__ void add_candidate(const downstream_line& line, const uint32_t (&its_hits)[n_long_ut_layers],
                                  float least, float magnet, float y, float stereo)
    {
        uint32_t n_used = 0;
        for (const uint32_t hit : its_hits) n_used += used[hit];
        const float n_used_hits = static_cast<float>(n_used), chi2 = least + p.used_hit_penalty * n_used_hits;
        if (n_used > p.max_used_ut_hits || !(chi2 < p.max_chi2) || chi2 > best.chi2) return;
        downstream_candidate found{line, chi2, magnet, y, stereo, n_used_hits, {}};
        found.line.y += y;
        for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer) {
            found.hits[layer] = its_hits[layer];
            if (!covers(its_hits[layer], found.line, p.y_margin)) return;
        }
        if (chi2 < best.chi2 || is_before(found)) best = found;
    }

    /// True if the hits of a candidate come before those of the best one: candidates of one chi2 need an order.
    __device__ bool is_before(const downstream_candidate& found) const
    {
        for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer)
            if (found.hits[layer] != best.hits[layer]) return found.hits[layer] < best.hits[layer];
        return false;
    }
};

/// Search for the continuations of the seeds of an event. `Functions`: made of downstream_field and the ty of a seed.
template <typename Lanes, typename Functions, typename Parameters>
__device__ void search_downstream(const Parameters& p, uint32_t event)
{
    if (!p.takes(event)) return;
    const uint32_t first_ut = p.ut_hits.first(event), n_ut = p.ut_hits.count[event];
    const uint32_t n_scifi = p.scifi_hits.count[event];
    const uint32_t first_seed = p.scifi_seeds.first(event), n_seeds = p.scifi_seeds.count[event];
    const uint32_t first_long = p.long_tracks.first(event), n_long = p.long_tracks.count[event];
    uint8_t* const scifi_used = p.scifi_hits_scratch.scifi_used + p.scifi_hits_scratch.first(event);
    uint8_t* const ut_used = p.ut_hits_scratch.ut_used + first_ut;

    for (uint32_t i = threadIdx.x; i < n_ut; i += blockDim.x) ut_used[i] = 0;
    for (uint32_t i = threadIdx.x; i < n_scifi; i += blockDim.x) scifi_used[i] = 0;
    block_barrier();
    for (uint32_t i = threadIdx.x; i < n_long * max_scifi_track_hits; i += blockDim.x) {
        const uint32_t hit = p.long_tracks.hits[first_long * max_scifi_track_hits + i];
        if (hit != no_scifi_hit) scifi_used[hit] = 1;
    }
    for (uint32_t i = threadIdx.x; i < n_long * n_long_ut_layers; i += blockDim.x) {
        const uint32_t hit = p.long_tracks.ut_hits[first_long * n_long_ut_layers + i];
        if (hit != no_ut_hit) ut_used[hit] = 1;
    }
    block_barrier();
    const downstream_ut_hits hits{p.ut_hits.x + first_ut,
                                  p.ut_hits.z + first_ut,
                                  p.ut_hits.y_begin + first_ut,
                                  p.ut_hits.y_end + first_ut,
                                  p.ut_hits.bin_order + first_ut,
                                  p.ut_hits.bin_x + first_ut,
                                  p.ut_hits.bin_z + first_ut,
                                  p.ut_hits.bin_begin + event * (n_all_ut_bins + 1u),
                                  p.ut_hits_scratch.ut_y_begin + first_ut,
                                  p.ut_hits_scratch.ut_y_end + first_ut};
    for (uint32_t i = threadIdx.x; i < n_ut && n_seeds != 0u; i += blockDim.x) {
        hits.ordered_y_begin[i] = hits.y_begin[hits.order[i]];
        hits.ordered_y_end[i] = hits.y_end[hits.order[i]];
    }
    block_barrier();

    const uint32_t max_pairs = p.max_pairs / max_of(n_seeds, 1u);
    for (uint32_t number = threadIdx.x; number < n_seeds; number += blockDim.x) {
        const uint32_t at = first_seed + number;
        p.downstream_candidates.found[at] = 0;
        uint32_t n_used = 0;
        for (uint32_t k = 0; k < max_scifi_track_hits; ++k) {
            const uint32_t hit = p.scifi_seeds.hits[at * max_scifi_track_hits + k];
            if (hit != no_scifi_hit) n_used += scifi_used[hit];
        }
        if (n_used > p.max_used_scifi_hits) continue;
        const float ty = p.scifi_seeds.ty[at];
        const seed_curve curve =
            seed_curve::of_state(p.scifi_seeds.x[at], p.scifi_seeds.tx[at], p.scifi_seeds.curvature[at]);
        const downstream_seed seed{curve.a, curve.b, p.scifi_seeds.y[at] - ty * (z_end_scifi - z_scifi_reference), ty};
        const Functions functions{*p.downstream_field, ty};
        downstream_search<Parameters, Functions, Lanes> search{p, hits, ut_used, seed, functions, max_pairs, {}};
        search.best.chi2 = 3e38f;
        if (!search.run()) atomicOr(&p.events.flags[event], static_cast<uint32_t>(overflow));
        const downstream_candidate& best = search.best;
        if (!(best.chi2 < 3e38f)) continue;
        p.downstream_candidates.found[at] = 1;
        for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer)
            p.downstream_candidates.ut_hits[at * n_long_ut_layers + layer] = static_cast<uint16_t>(best.hits[layer]);
        p.downstream_candidates.x[at] = best.line.x;
        p.downstream_candidates.y[at] = best.line.y;
        p.downstream_candidates.tx[at] = best.line.tx;
        p.downstream_candidates.ty[at] = best.line.ty;
        p.downstream_candidates.qop[at] = downstream_qop(*p.downstream_field, best.line);
        p.downstream_candidates.chi2[at] = best.chi2;
        p.downstream_candidates.magnet_distance[at] = best.magnet_distance;
        p.downstream_candidates.y_distance[at] = best.y_distance;
        p.downstream_candidates.stereo_distance[at] = best.stereo_distance;
        p.downstream_candidates.used_ut_hits[at] = best.used_ut_hits;
    }
}

}  // namespace hlt

HLT_KERNEL(downstream_search_ut) { hlt::search_downstream<hlt::single_hits, hlt::downstream_functions>(p, blockIdx.x); }
