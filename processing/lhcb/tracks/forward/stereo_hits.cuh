// Stereo hits of a forward candidate. A stereo hit measures a shift of the track in y; the hits of a track have the
// same shift (docs/physics/long-tracks.md).
#pragma once

#include "lhcb/tracks/forward/x_hits.cuh"
#include "lhcb/tracks/long/layers.cuh"

namespace hlt {

constexpr uint32_t max_stereo_hits = 3;  // on either side of the expected place
constexpr float stereo_window_sigmas = 3.f;

struct stereo_cuts {
    float margin;      // mm, in x
    float max_spread;  // mm, in y
};

/// Expected place of a track in a stereo layer, and half the width of the window there; per lane, if kink or layer are
/// per lane.
template <typename Lanes, typename Real, typename Bend, typename Layer>
__device__ void expect_stereo_hit(const velo_line_of<Real>& line, const Bend& bend,
                                  const forward_hypothesis_of<Real>& where, const stereo_cuts& cuts,
                                  const Lanes& offset, const Layer& layer_z, const Layer& dx_dy, const Layer& dz_dy,
                                  Lanes& expected, Lanes& window)
{
    const Lanes y = line.y_at(layer_z) + line.ty * bend.y_change(layer_z) + where.shift;
    const Lanes z = layer_z + dz_dy * y;
    expected = line.x_at(z) + bend.kink * bend.lever(z) + offset - dx_dy * y;
    window = stereo_window_sigmas * where.sigma_shift(bend.kink) * absolute(dx_dy) + cuts.margin;
}

/// Number of stereo layers that may have hits in the window of a track with this kink and offset.
__device__ uint32_t count_stereo_layers(const long_track_parameters& parameters, const scifi_event& hits,
                                        const velo_line& line, const bend_in_memory& bend,
                                        const forward_hypothesis& where, uint32_t half, const stereo_cuts& cuts,
                                        float kink, float offset)
{
    const bend_at_kink at = bend.at(kink);
    uint32_t n = 0;
#pragma unroll 1
    for (uint32_t k = 0; k < n_scifi_stereo_layers; ++k) {
        const uint32_t layer = stereo_layer(k);
        float expected, window;
        expect_stereo_hit(line, at, where, cuts, offset, parameters.layer_z[layer], parameters.layer_dx_dy[layer],
                          parameters.layer_dz_dy[layer], expected, window);
        n += may_have_hit(hits, 2u * layer + half, expected, window) ? 1u : 0u;
    }
    return n;
}

/// Hits of the stereo layers in the window of a candidate, layer by layer.
struct stereo_hits {
    static constexpr uint32_t max = 2u * max_stereo_hits * n_scifi_stereo_layers;
    float shift[max];  // shift in y from the hit
    uint32_t hit[max];
    uint32_t end[n_scifi_stereo_layers];  // of the hits of each layer
    uint32_t n;
};

/// Add the hits of a layer: at most max_stereo_hits on either side of the expected place.
__device__ void add_layer(const scifi_event& hits, uint32_t layer, uint32_t half, float dx_dy, float expected,
                          float window, stereo_hits& found)
{
    const scifi_zone zone(hits, layer, half);
    const uint32_t middle = zone.from(expected);
    const uint32_t lowest = max_of(zone.begin() + max_stereo_hits, middle) - max_stereo_hits;
    const uint32_t highest = min_of(zone.end(), middle + max_stereo_hits);
    const float low = expected - window, high = expected + window;
    for (uint32_t i = lowest; i < highest; ++i) {
        const float x = hits.x[i];
        if (x < low || !(x < high)) continue;
        found.shift[found.n] = (expected - x) / dx_dy;
        found.hit[found.n] = i;
        ++found.n;
    }
}

/// Add the stereo hits to a candidate; `shift`: their shift in y. Returns false if there are too few hits.
__device__ bool add_stereo_hits(const long_track_parameters& parameters, const scifi_event& hits, const velo_line& line,
                                const bend_at_kink& bend, const forward_hypothesis& where, uint32_t half,
                                const stereo_cuts& cuts, uint32_t min_hits, x_candidate& candidate, float& shift)
{
    const float sigma = where.sigma_shift(bend.kink);
    stereo_hits found;
    found.n = 0;
    uint32_t n_missing = 0;
#pragma unroll 1
    for (uint32_t k = 0; k < n_scifi_stereo_layers; ++k) {
        const uint32_t layer = stereo_layer(k), begin = found.n;
        const float dx_dy = parameters.layer_dx_dy[layer];
        float expected, window;
        expect_stereo_hit(line, bend, where, cuts, candidate.offset, parameters.layer_z[layer], dx_dy,
                          parameters.layer_dz_dy[layer], expected, window);
        add_layer(hits, layer, half, dx_dy, expected, window, found);
        found.end[k] = found.n;
        n_missing += found.n == begin;
    }
    if (candidate.n_hits + n_scifi_stereo_layers - n_missing < min_hits) return false;

    // The shift with hits in most layers; of several, the most likely one.
    float best_score = -1e9f, best = 0.f;
    for (uint32_t i = 0; i < found.n; ++i) {
        const float mine = found.shift[i];
        float score = 0.f;
#pragma unroll 1
        for (uint32_t k = 0, j = 0; k < n_scifi_stereo_layers; ++k) {
            bool agrees = false;
            for (; j < found.end[k]; ++j) agrees |= absolute(found.shift[j] - mine) < cuts.max_spread;
            score += agrees ? 1.f : 0.f;
        }
        const float pull = mine / sigma;
        score = score - 0.25f * pull * pull;
        if (score > best_score) {
            best_score = score;
            best = mine;
        }
    }
#pragma unroll 1
    for (uint32_t k = 0, j = 0; k < n_scifi_stereo_layers; ++k) {
        float closest = cuts.max_spread;
        for (; j < found.end[k]; ++j) {
            float distance = found.shift[j] - best;
            distance = distance < 0.f ? -distance : distance;
            if (distance < closest) {
                closest = distance;
                if (candidate.hits[stereo_layer(k)] == no_scifi_hit) ++candidate.n_hits;
                candidate.hits[stereo_layer(k)] = static_cast<uint16_t>(found.hit[j]);
            }
        }
    }
    shift = where.shift + best;
    return candidate.n_hits >= min_hits;
}

}  // namespace hlt
