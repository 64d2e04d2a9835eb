// Hits of the x layers on the way of a track: pairs in a first and a last layer, and the nearest hits in the other four
// (docs/physics/long-tracks.md).
//
// A pair fixes kink and offset of the track, and with them its place in every other layer. Where a layer is looked at
// follows from the distances of the pair by parabolas, which are made once for a track from the exact functions at
// three kinks.
#pragma once

#include "lhcb/forward/hypothesis.cuh"
#include "lhcb/long_tracks/scifi_zones.cuh"
#include "lhcb/long_tracks/layers.cuh"

namespace hlt {

constexpr uint32_t n_scifi_x_layers = 6;

struct parabola {
    float a0, a1, a2;

    __device__ float operator()(float x) const { return a0 + x * (a1 + x * a2); }
};

__device__ parabola parabola_through(const float (&x)[3], const float (&y)[3])
{
    const float first = (y[1] - y[0]) / (x[1] - x[0]), second = (y[2] - y[1]) / (x[2] - x[1]);
    const float a2 = (second - first) / (x[2] - x[0]);
    const float a1 = first - a2 * (x[0] + x[1]);
    return {y[0] - x[0] * (a1 + x[0] * a2), a1, a2};
}

struct forward_cuts {
    float n_sigma;
    kink_error x_window;
    uint32_t max_pairs;
    uint32_t max_candidates;
};

/// What a pair and the hits beside it say: the hit of each layer, or no_scifi_hit.
struct x_candidate {
    uint16_t hits[n_scifi_layers];
    uint32_t n_hits;
    float kink;
    float offset;  // mm, of x from the parametrisation, at any z
};

/// The x layers in pairs of a first and a last one, those between and those beside them.
struct layer_seed {
    uint8_t first, last, others[4];
};

__device__ layer_seed seed_layers(uint32_t seed)
{
    return seed == 0u ? layer_seed{0, 8, {4, 7, 3, 11}} : layer_seed{3, 11, {4, 7, 0, 8}};
}

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
constexpr uint32_t first_hits_at_once = 1;
#else
constexpr uint32_t first_hits_at_once = 8;  // lanes of a vector register; there are as many places behind the last hit
#endif

/// Find the x hits of a track with a hypothesis and call `complete(candidate)` for each set of at least four layers.
template <typename Complete>
__device__ void find_x_hits(const long_track_parameters& parameters, const scifi_event& hits, const velo_line& line,
                            const track_bend& bend, const forward_hypothesis& where, uint32_t half,
                            const forward_cuts& cuts, const Complete& complete)
{
    const auto z_of = [&](uint32_t layer) {
        const float z = parameters.layer_z[layer];
        return z + parameters.layer_dz_dy[layer] * (line.y_at(z) + where.shift);
    };
    const bend_at_kink nodes[3] = {bend.at(where.low), bend.at(0.5f * (where.low + where.high)), bend.at(where.high)};
    uint32_t pairs_left = cuts.max_pairs, candidates_left = cuts.max_candidates;
#pragma unroll 1
    for (uint32_t seed = 0; seed < 2u; ++seed) {
        const layer_seed layers = seed_layers(seed);
        const float z_first = z_of(layers.first), z_last = z_of(layers.last);
        float lever[3], difference[3], dx_at[3], rise_at[3], y[3];
        for (uint32_t i = 0; i < 3u; ++i) {
            lever[i] = nodes[i].lever(z_first) + where.offset_per_kink;
            difference[i] = nodes[i].lever(z_last) - nodes[i].lever(z_first);
            dx_at[i] = nodes[i].kink * lever[i];
            rise_at[i] = nodes[i].kink * difference[i];
            y[i] = (lever[i] + difference[i]) / lever[i];
        }
        const parabola ratio = parabola_through(dx_at, y);
        for (uint32_t i = 0; i < 3u; ++i) y[i] = 1.f / difference[i];
        const parabola kink_per_rise = parabola_through(rise_at, y);
        parabola share[4];
        float straight[4];
#pragma unroll 1
        for (uint32_t k = 0; k < 4u; ++k) {
            const float z = z_of(layers.others[k]);
            straight[k] = line.x_at(z) + where.offset;
            for (uint32_t i = 0; i < 3u; ++i) y[i] = (nodes[i].lever(z) - nodes[i].lever(z_first)) / difference[i];
            share[k] = parabola_through(rise_at, y);
        }
        const float straight_first = line.x_at(z_first) + where.offset;
        const float straight_last = line.x_at(z_last) + where.offset;
        const float to_tolerance = cuts.n_sigma * difference[1] / lever[1];
        const float per_dx = where.sigma_offset.per_kink / lever[1];

        const scifi_zone first(hits, layers.first, half), last(hits, layers.last, half);
        const scifi_zone others[4] = {{hits, layers.others[0], half},
                                      {hits, layers.others[1], half},
                                      {hits, layers.others[2], half},
                                      {hits, layers.others[3], half}};
        const float begin_x = straight_first + dx_at[0] - cuts.n_sigma * where.sigma_offset(where.low);
        const float end_x = straight_first + dx_at[2] + cuts.n_sigma * where.sigma_offset(where.high);
        const uint32_t end = first.from(end_x);
        for (uint32_t begin = first.from(begin_x); begin < end; begin += first_hits_at_once) {
            // Where the last hit is looked for, for several first hits: some may lie behind the last of them.
            float dx_of[first_hits_at_once], low_of[first_hits_at_once], high_of[first_hits_at_once];
            for (uint32_t l = 0; l < first_hits_at_once; ++l) {
                const float dx = hits.x[begin + l] - straight_first;
                const float expected = straight_last + dx * ratio(dx);
                const float tolerance = to_tolerance * (where.sigma_offset.constant + per_dx * (dx < 0.f ? -dx : dx));
                dx_of[l] = dx;
                low_of[l] = expected - tolerance;
                high_of[l] = expected + tolerance;
            }
            const uint32_t n_now = min_of(end - begin, first_hits_at_once);
            for (uint32_t l = 0; l < n_now; ++l) {
                const uint32_t i = begin + l;
                const float dx = dx_of[l], high = high_of[l];
                for (uint32_t j = last.from(low_of[l]); j < last.end(); ++j) {
                    const float x_last = hits.x[j];
                    if (!(x_last < high)) break;
                    if (pairs_left == 0u) return;
                    --pairs_left;
                    const float rise = x_last - straight_last - dx;
                    const float kink = rise * kink_per_rise(rise);
                    if (!(where.low <= kink && kink <= where.high)) continue;
                    const float most = cuts.x_window(kink);
                    uint32_t found[4];
                    uint32_t n = 2;
#pragma unroll 1
                    for (uint32_t k = 0; k < 2u; ++k) {
                        found[k] = others[k].nearest(straight[k] + dx + rise * share[k](rise), most);
                        n += found[k] != no_scifi_hit;
                    }
                    if (n == 2u) continue;
#pragma unroll 1
                    for (uint32_t k = 2; k < 4u; ++k) {
                        found[k] = others[k].nearest(straight[k] + dx + rise * share[k](rise), most);
                        n += found[k] != no_scifi_hit;
                    }
                    // The second seed finds again what the first has found.
                    if (n < 4u || (seed == 1u && found[2] != no_scifi_hit && found[3] != no_scifi_hit)) continue;
                    if (candidates_left == 0u) return;
                    --candidates_left;
                    x_candidate candidate;
                    for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) candidate.hits[layer] = no_scifi_hit;
                    candidate.hits[layers.first] = static_cast<uint16_t>(i);
                    candidate.hits[layers.last] = static_cast<uint16_t>(j);
                    for (uint32_t k = 0; k < 4u; ++k)
                        candidate.hits[layers.others[k]] = static_cast<uint16_t>(found[k]);
                    candidate.n_hits = n;
                    candidate.kink = kink;
                    candidate.offset = dx - kink * bend.at(kink).lever(z_first) + where.offset;
                    complete(candidate);
                }
            }
        }
    }
}

}  // namespace hlt
