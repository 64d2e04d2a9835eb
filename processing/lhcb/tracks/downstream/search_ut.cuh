// The UT hits that continue each SciFi seed without a long track best (docs/physics/downstream-tracks.md).
//
// A hit of the last UT layer and the seed give the kink in the magnet, and with it the line in the UT. Hits of the
// first layer near this line correct it. Hits of both stereo layers must agree on y, with each other and with the seed.
// The candidate with the smallest chi2 is kept. A hit of a long track adds to chi2; a candidate with more than
// max_used_ut_hits of them is none, nor is a seed with more than max_used_scifi_hits.
// In:  scifi_seeds, ut_hits with their order by bins, long_tracks, downstream_field.
// Out: downstream_candidates, at the place of the seed.
// One block per event; threads stride over hits and seeds. Each thread writes only candidates of its seeds. Bounds: the
// columns in the order of bins are loaded up to ut_hit_padding - 1 places behind the last hit. The seeds of an event
// share max_pairs pairs of a last and a first hit equally; a seed with more flags its event and keeps the best
// candidate of its share. Of bins of x with more than max_in_ut_bin hits none is used.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/downstream/generated/downstream_search_ut.h"
#include "lhcb/tracks/downstream/ut_lines.cuh"
#include "lhcb/tracks/matching/ut_confirmation.cuh"

namespace hlt {

/// The UT hits of an event by place, in the order of their bins, as binned_ut_hits.
struct downstream_ut_hits {
    const uint16_t* order;
    const uint32_t* bin_begin;
    const float *x, *z;
    float *y_begin, *y_end;
    float* used;  // 1 for a hit of a long track, else 0

    __device__ uint32_t begin_of(uint32_t layer, float from_x) const { return bin_begin[ut_bin_of(layer, from_x)]; }
    __device__ uint32_t end_of(uint32_t layer, float to_x) const { return bin_begin[ut_bin_of(layer, to_x) + 1u]; }
};

constexpr float no_chi2 = 3e38f;  // of a seed without a candidate

struct downstream_candidate {
    downstream_line line;
    float chi2, magnet_distance, y_distance, stereo_distance, used_ut_hits;
    uint32_t hits[n_long_ut_layers];

    /// True if its hits come before those of another one: candidates of one chi2 need an order.
    __device__ bool is_before(const downstream_candidate& other) const
    {
        for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer)
            if (hits[layer] != other.hits[layer]) return hits[layer] < other.hits[layer];
        return false;
    }
};

/// The search for the hits of one seed, hit by hit. `Parameters`: those of the kernel.
template <typename Parameters>
struct downstream_search {
    using functions_of_seed = downstream_functions;

    const Parameters& p;
    const downstream_ut_hits& hits;
    const downstream_seed& seed;
    const downstream_functions& functions;
    uint32_t left;
    downstream_candidate best;

    __device__ downstream_search(const Parameters& parameters, const downstream_ut_hits& ut_hits,
                                 const downstream_seed& of_seed, const downstream_functions& of_field,
                                 uint32_t max_pairs)
        : p(parameters), hits(ut_hits), seed(of_seed), functions(of_field), left(max_pairs)
    {
        best.chi2 = no_chi2;
    }

    /// True if the strip of a hit reaches the line, `margin` (mm) included.
    __device__ bool covers(uint32_t place, const downstream_line& line, float margin) const
    {
        return strips_reach(hits.y_begin[place], hits.y_end[place], hits.z[place], line.y, line.ty, margin);
    }

    /// Returns false if there are more pairs than `left`.
    __device__ bool run()
    {
        const downstream_estimate estimate = estimate_of(p, functions, seed);
        if (!estimate.has_hits) return true;
        bool all = true;
        const uint32_t end = hits.end_of(3u, estimate.end_x);
        for (uint32_t place = hits.begin_of(3u, estimate.first_x); place < end; ++place) {
            if (!covers(place, estimate.line, estimate.y_margin)) continue;
            const float x = hits.x[place], z = hits.z[place];
            downstream_line line = line_through(*p.downstream_field, functions, seed, x, z);
            if (!is_within_cuts(p, line, x, z)) continue;
            bend_in_y(functions, seed, line);
            const line_of_last_hit<float> last = with_windows(p, line, x, z);
            if (covers(place, line, last.y_window)) all &= add_first(last, place);
        }
        return all;
    }

    /// Try the hits of the first layer near a line through a hit of the last one. Returns false if there are more pairs
    /// than `left`.
    __device__ bool add_first(const line_of_last_hit<float>& last, uint32_t last_place)
    {
        const uint32_t end = hits.end_of(0u, last.end_x);
        for (uint32_t place = hits.begin_of(0u, last.first_x); place < end; ++place) {
            const float z = hits.z[place];
            const float to_first = x_to_first(last.line.x, last.bend, hits.x[place], z);
            if (!(absolute(to_first + last.line.tx * (z - last.z)) <= last.x_window) ||
                !covers(place, last.line, last.y_window))
                continue;
            if (left == 0u) return false;
            --left;
            const line_of_pair<float> pair =
                through_pair(p, functions, seed, last, to_first, z, hits.used[place] + hits.used[last_place]);
            // Hits that long tracks have add to chi2, whatever the stereo hits are.
            if (pair.n_used <= static_cast<float>(p.max_used_ut_hits) && pair.least_chi2 < p.max_chi2 &&
                pair.least_chi2 <= best.chi2)
                add_stereo(pair, place, last_place);
        }
        return true;
    }

    /// Try the pairs of stereo hits of a line.
    __device__ void add_stereo(const line_of_pair<float>& pair, uint32_t first, uint32_t last)
    {
        const stereo_windows<float> windows = stereo_windows_of(p, pair, best.chi2);
        const float* dx_dy = p.downstream_field->ut_dx_dy;
        const auto distance = [&](uint32_t place, float of_layer) {
            return stereo_distance(pair, hits.x[place], hits.z[place], of_layer);
        };
        const auto is_near = [&](uint32_t place, float d) {
            return absolute(d) < windows.reach && covers(place, pair.line, pair.y_window);
        };
        const uint32_t begin2 = hits.begin_of(2u, windows.first_x[1]), end2 = hits.end_of(2u, windows.end_x[1]);
        const uint32_t end1 = hits.end_of(1u, windows.end_x[0]);
        for (uint32_t u = hits.begin_of(1u, windows.first_x[0]); u < end1; ++u) {
            const float d1 = distance(u, dx_dy[1]);
            if (!is_near(u, d1)) continue;
            for (uint32_t v = begin2; v < end2; ++v) {
                const float d2 = distance(v, dx_dy[2]);
                if (!is_near(v, d2)) continue;
                const stereo_pair<float> stereo = stereo_pair_of(d1, d2, pair.magnet_chi2, windows.y_weight, dx_dy[1]);
                if (absolute(stereo.stereo) < p.stereo_window) add_candidate(pair, stereo, {first, u, v, last});
            }
        }
    }

    /// Keep a candidate that is better than the best one.
    __device__ void add_candidate(const line_of_pair<float>& pair, const stereo_pair<float>& stereo,
                                  const uint32_t (&places)[n_long_ut_layers])
    {
        const float n_used = pair.n_used + hits.used[places[1]] + hits.used[places[2]];
        const float chi2 = stereo.chi2_without_used + p.used_hit_penalty * n_used;
        if (n_used > static_cast<float>(p.max_used_ut_hits) || !(chi2 < p.max_chi2) || chi2 > best.chi2) return;
        downstream_candidate found{pair.line, chi2, pair.magnet, stereo.y, stereo.stereo, n_used, {}};
        found.line.y += stereo.y;
        for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer) {
            found.hits[layer] = hits.order[places[layer]];
            if (!covers(places[layer], found.line, p.y_margin)) return;
        }
        if (chi2 < best.chi2 || found.is_before(best)) best = found;
    }
};

/// Search for the continuations of the seeds of an event. `Search`: downstream_search or its form for the CPU.
template <typename Search, typename Parameters>
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
    const downstream_ut_hits hits{p.ut_hits.bin_order + first_ut,
                                  p.ut_hits.bin_begin + event * (n_all_ut_bins + 1u),
                                  p.ut_hits.bin_x + first_ut,
                                  p.ut_hits.bin_z + first_ut,
                                  p.ut_hits_scratch.ut_y_begin + first_ut,
                                  p.ut_hits_scratch.ut_y_end + first_ut,
                                  p.ut_hits_scratch.ut_used_in_order + first_ut};
    for (uint32_t place = threadIdx.x; place < n_ut && n_seeds != 0u; place += blockDim.x) {
        const uint32_t hit = hits.order[place];
        hits.y_begin[place] = p.ut_hits.y_begin[first_ut + hit];
        hits.y_end[place] = p.ut_hits.y_end[first_ut + hit];
        hits.used[place] = static_cast<float>(ut_used[hit]);
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
        const typename Search::functions_of_seed functions{*p.downstream_field, ty};
        Search search(p, hits, seed, functions, max_pairs);
        if (!search.run()) atomicOr(&p.events.flags[event], static_cast<uint32_t>(overflow));
        const downstream_candidate& best = search.best;
        if (!(best.chi2 < no_chi2)) continue;
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

HLT_KERNEL(downstream_search_ut)
{
    hlt::search_downstream<hlt::downstream_search<downstream_search_ut_parameters>>(p, blockIdx.x);
}
