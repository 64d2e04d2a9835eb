// Looking Forward, x layers: the best two sets of x hits that continue each VELO-UT track
// (docs/physics/looking-forward.md). The steps of the thesis: search initial windows, collect candidates, triplet
// seeding, triplet keep best (all in triplets.cuh), extend tracks x, quality filter x.
//
// One block per event. Its threads take one track after the other, and share windows, hits, pairs and triplets of it.
//
// In:  velo_end.{x, y, tx, ty}, ut_tracks.{count, velo_track, qop, hits}, ut_hits.{x, z, weight}, scifi_hits.{count, x,
//      z, bins, cells}, long_track_parameters.
// Out: ut_tracks.{x_hit_count, x_hits, n_triplet_chi2} [VELO-UT track].
// Bounds: 32 candidates in a layer of a track, so 4 * 32^3 values of chi2; 32 triplets; 2 sets of x hits.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/looking_forward/generated/looking_forward_find_x_tracks.h"
#include "lhcb/tracks/looking_forward/triplets.cuh"

namespace hlt {

/// The candidate of an x layer nearest to x if it is closer than `most`, or no_triplet.
__device__ uint32_t nearest_candidate(const x_triplet_search& search, uint32_t k, float x, float most)
{
    uint32_t nearest = no_triplet;
    for (uint32_t i = 0; i < search.n_candidates[k]; ++i) {
        const float distance = absolute(search.x[k][i] - x);
        if (distance < most) {
            most = distance;
            nearest = i;
        }
    }
    return nearest;
}

/// Step 5: the candidates of the other layers nearest to the curve through a triplet, and the spread of all hits: their
/// mean square distance from their mean (mm^2), after each moves to the reference plane along the curve that begins as
/// the line of the VELO.
__device__ void extend_triplet(const x_triplet_search& search, const bend_in_memory& bend, const kink_error& tolerance,
                               uint32_t number, uint8_t* set, uint8_t& size, float& spread)
{
    const uint32_t middle = search.kept[number], k = middle / max_x_hits_of_layer;
    const uint32_t first = search.pair[middle] % max_x_hits_of_layer;
    const uint32_t last = search.pair[middle] / max_x_hits_of_layer;
    const scifi_curve curve = scifi_curve_through(bend, search.track, search.x[k][first], search.windows[k].z,
                                                  search.x[k + 2u][last], search.windows[k + 2u].z);
    const float most = tolerance(curve.bend.kink), lever = curve.bend.lever(z_scifi_reference);
    float sum = 0.f, sum_of_squares = 0.f;
    uint32_t n = 0;
    for (uint32_t layer = 0; layer < n_scifi_x_layers; ++layer) {
        const x_layer_window& window = search.windows[layer];
        uint32_t hit = layer == k        ? first
                       : layer == k + 1u ? middle % max_x_hits_of_layer
                       : layer == k + 2u
                           ? last
                           : nearest_candidate(search, layer, curve.x_at(search.track.line, window.z), most);
        set[layer] = static_cast<uint8_t>(hit);
        if (hit == no_triplet) continue;
        const float projected =
            (search.x[layer][hit] - window.straight) * (lever / curve.bend.lever(window.z)) - curve.bend.kink * lever;
        sum += projected;
        sum_of_squares += projected * projected;
        ++n;
    }
    const float mean = sum / static_cast<float>(n);
    size = static_cast<uint8_t>(n);
    spread = sum_of_squares / static_cast<float>(n) - mean * mean;
}

__device__ bool is_same_set(const uint8_t* a, const uint8_t* b)
{
    bool same = true;
    for (uint32_t layer = 0; layer < n_scifi_x_layers; ++layer) same &= a[layer] == b[layer];
    return same;
}

/// Step 6: the set with the smallest spread that has enough hits and differs from another one, or no_triplet.
__device__ uint32_t best_set(const x_triplet_search& search, uint32_t n, uint32_t min_hits, float max_spread,
                             uint32_t other)
{
    uint32_t best = no_triplet;
    float smallest = max_spread;
    for (uint32_t i = 0; i < n && search.kept[i] != no_triplet; ++i) {
        if (search.set_size[i] < min_hits || !(search.spread[i] < smallest)) continue;
        if (other != no_triplet && is_same_set(search.set_hits[i], search.set_hits[other])) continue;
        smallest = search.spread[i];
        best = i;
    }
    return best;
}

}  // namespace hlt

HLT_KERNEL(looking_forward_find_x_tracks, __maxnreg__(128))
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ hlt::x_triplet_search search;
    const uint32_t n_tracks = p.ut_tracks.count[event], first_track = p.ut_tracks.first(event);
    const uint32_t first_scifi_hit = p.scifi_hits.first(event);
    const bool has_hits = p.scifi_hits.count[event] > 0u;
    const hlt::scifi_event hits{{p.scifi_hits.x, first_scifi_hit},
                                {p.scifi_hits.z, first_scifi_hit},
                                {p.scifi_hits.bins, event * hlt::n_scifi_zones * hlt::scifi_bin_stride},
                                {p.scifi_hits.cells, event * hlt::scifi_cell_stride}};
    const hlt::kink_error tolerance{p.x_tolerance, p.x_tolerance_per_kink};
    const float max_qop = 1.f / p.min_p;

#pragma unroll 1
    for (uint32_t t = 0; t < n_tracks; ++t) {
        const uint32_t track = first_track + t, slot = p.ut_tracks.velo_track[track];
        const bool searched =
            has_hits && slot < hlt::max_long_tracks && hlt::absolute(p.ut_tracks.qop[track]) < max_qop;
        if (threadIdx.x == 0 && !searched) {
            p.ut_tracks.n_triplet_chi2[track] = 0;
            for (uint32_t i = 0; i < hlt::max_x_tracks; ++i) p.ut_tracks.x_hit_count[hlt::max_x_tracks * track + i] = 0;
        }
        if (!searched) continue;
        if (threadIdx.x == 0) search.track = hlt::predict_from_ut(p, event, t, slot);
        hlt::block_barrier();
        hlt::search_initial_windows(p, hits, search);
        hlt::collect_candidates(hits, search);
        hlt::seed_triplets(p.triplet_curvature, p.tensor_core_form, search);
        hlt::keep_best_triplets(p.n_triplets, p.max_triplet_chi2, search);
        if (threadIdx.x < p.n_triplets && search.kept[threadIdx.x] != hlt::no_triplet) {
            const hlt::bend_in_memory bend{hlt::track_bend(*p.long_track_parameters, search.track.line)};
            for (uint32_t i = threadIdx.x; i < p.n_triplets && search.kept[i] != hlt::no_triplet; i += blockDim.x)
                hlt::extend_triplet(search, bend, tolerance, i, search.set_hits[i], search.set_size[i],
                                    search.spread[i]);
        }
        hlt::block_barrier();
        if (threadIdx.x == 0) {
            uint32_t n_chi2 = 0, other = hlt::no_triplet;
            for (uint32_t k = 0; k < hlt::n_triplet_layers; ++k)
                n_chi2 += search.n_candidates[k] * search.n_candidates[k + 1u] * search.n_candidates[k + 2u];
            p.ut_tracks.n_triplet_chi2[track] = n_chi2;
            for (uint32_t i = 0; i < hlt::max_x_tracks; ++i) {
                const uint32_t to = hlt::max_x_tracks * track + i;
                const uint32_t best = hlt::best_set(search, p.n_triplets, p.min_x_hits, p.max_spread, other);
                p.ut_tracks.x_hit_count[to] = 0;
                if (best == hlt::no_triplet) continue;
                other = best;
                p.ut_tracks.x_hit_count[to] = search.set_size[best];
                for (uint32_t layer = 0; layer < hlt::n_scifi_x_layers; ++layer) {
                    const uint32_t hit = search.set_hits[best][layer];
                    p.ut_tracks.x_hits[hlt::n_scifi_x_layers * to + layer] =
                        hit == hlt::no_triplet ? static_cast<uint16_t>(hlt::no_scifi_hit) : search.hits[layer][hit];
                }
            }
        }
        hlt::block_barrier();
    }
}
