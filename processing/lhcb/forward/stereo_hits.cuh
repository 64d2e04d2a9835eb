// Stereo hits of a forward candidate. A stereo hit asks for a shift of the track in y; those of a track ask for the
// same one (docs/physics/long-tracks.md).
#pragma once

#include "lhcb/forward/x_hits.cuh"
#include "lhcb/long_tracks/layers.cuh"

namespace hlt {

constexpr uint32_t max_stereo_hits = 3;  // on either side of the expected place
constexpr float stereo_window_sigmas = 3.f;

struct stereo_cuts {
    float margin;      // mm, in x
    float max_spread;  // mm, in y
};

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
constexpr uint32_t stereo_lanes = n_scifi_stereo_layers;
#else
constexpr uint32_t stereo_lanes = 8;  // of a vector register; the last two are not used
#endif

/// Where the stereo layers are at y = 0 (mm), and the slopes of their fibres.
struct stereo_planes {
    float z[stereo_lanes], dx_dy[stereo_lanes], dz_dy[stereo_lanes];

    __device__ explicit stereo_planes(const long_track_parameters& parameters)
    {
#pragma unroll 1
        for (uint32_t k = 0; k < stereo_lanes; ++k) {
            const uint32_t layer = stereo_layer(min_of(k, n_scifi_stereo_layers - 1u));
            z[k] = parameters.layer_z[layer];
            dx_dy[k] = parameters.layer_dx_dy[layer];
            dz_dy[k] = parameters.layer_dz_dy[layer];
        }
    }
};

/// Add the stereo hits to a candidate; `shift`: in y, that they ask for. False if there are too few hits.
__device__ bool add_stereo_hits(const stereo_planes& planes, const scifi_event& hits, const velo_line& line,
                                const bend_at_kink& bend, const forward_hypothesis& where, uint32_t half,
                                const stereo_cuts& cuts, uint32_t min_hits, x_candidate& candidate, float& shift)
{
    constexpr uint32_t max_found = 2u * max_stereo_hits * n_scifi_stereo_layers;
    float shift_of[max_found];
    uint16_t hit_of[max_found];
    uint32_t end_of_layer[n_scifi_stereo_layers];
    const float sigma = where.sigma_shift(bend.kink);
    uint32_t n_found = 0, n_missing = 0;
    float expected_in[stereo_lanes], window_in[stereo_lanes];
#pragma unroll 1
    for (uint32_t k = 0; k < stereo_lanes; ++k) {
        const float dx_dy = planes.dx_dy[k];
        float z = planes.z[k];
        const float y = line.y_at(z) + line.ty * bend.y_change(z) + where.shift;
        z += planes.dz_dy[k] * y;
        expected_in[k] = line.x_at(z) + bend.kink * bend.lever(z) + candidate.offset - dx_dy * y;
        window_in[k] = stereo_window_sigmas * sigma * (dx_dy < 0.f ? -dx_dy : dx_dy) + cuts.margin;
    }
#pragma unroll 1
    for (uint32_t k = 0; k < n_scifi_stereo_layers; ++k) {
        const uint32_t layer = stereo_layer(k);
        const float dx_dy = planes.dx_dy[k], expected = expected_in[k], window = window_in[k];
        const scifi_zone zone(hits, layer, half);
        const uint32_t middle = zone.from(expected);
        const uint32_t lowest = max_of(zone.begin() + max_stereo_hits, middle) - max_stereo_hits;
        const uint32_t highest = min_of(zone.end(), middle + max_stereo_hits);
        uint32_t begin = middle, end = middle;
        while (begin > lowest && !(hits.x[begin - 1u] < expected - window)) --begin;
        while (end < highest && hits.x[end] < expected + window) ++end;
        for (uint32_t i = begin; i < end; ++i) {
            shift_of[n_found] = (expected - hits.x[i]) / dx_dy;
            hit_of[n_found] = static_cast<uint16_t>(i);
            ++n_found;
        }
        end_of_layer[k] = n_found;
        n_missing += begin == end;
        if (candidate.n_hits + n_scifi_stereo_layers - n_missing < min_hits) return false;
    }

    // The shift on which most layers agree; of several the most likely one.
    float best_score = -1e9f, best = 0.f;
    for (uint32_t i = 0; i < n_found; ++i) {
        float n_layers = 0.f;
#pragma unroll 1
        for (uint32_t k = 0, j = 0; k < n_scifi_stereo_layers; ++k) {
            bool agrees = false;
            for (; j < end_of_layer[k]; ++j) {
                const float difference = shift_of[j] - shift_of[i];
                agrees |= (difference < 0.f ? -difference : difference) < cuts.max_spread;
            }
            n_layers += agrees ? 1.f : 0.f;
        }
        const float pull = shift_of[i] / sigma;
        const float score = n_layers - 0.25f * pull * pull;
        if (score > best_score) {
            best_score = score;
            best = shift_of[i];
        }
    }
#pragma unroll 1
    for (uint32_t k = 0, j = 0; k < n_scifi_stereo_layers; ++k) {
        float closest = cuts.max_spread;
        for (; j < end_of_layer[k]; ++j) {
            float distance = shift_of[j] - best;
            distance = distance < 0.f ? -distance : distance;
            if (distance < closest) {
                closest = distance;
                if (candidate.hits[stereo_layer(k)] == no_scifi_hit) ++candidate.n_hits;
                candidate.hits[stereo_layer(k)] = hit_of[j];
            }
        }
    }
    shift = where.shift + best;
    return candidate.n_hits >= min_hits;
}

}  // namespace hlt
