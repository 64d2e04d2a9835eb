// Stereo hits of a forward candidate on the CPU (stereo_hits.cuh).
#pragma once

#include "lhcb/tracks/forward/candidates_cpu.h"

namespace hlt {

/// stereo_hits, with the layer of each hit beside it.
struct stereo_hits_of_layers {
    static constexpr uint32_t size = stereo_hits::max + 2u * n_wide;
    float shift[size];
    uint32_t hit[size];
    uint32_t layer_bit[size];
    uint32_t n = 0;

    /// As add_layer; `k`: the number of the layer among the stereo layers.
    void add(const scifi_event& hits, uint32_t k, uint32_t layer, uint32_t half, float dx_dy, float expected,
             float window)
    {
        const scifi_zone zone(hits, layer, half);
        const uint32_t middle = zone.from(expected);
        const uint32_t lowest = max_of(zone.begin() + max_stereo_hits, middle) - max_stereo_hits;
        const uint32_t highest = min_of(zone.end(), middle + max_stereo_hits);
        float8 x;
        load8(x, &hits.x[lowest]);
        const uint32_t used = (1u << (max_of(highest, lowest) - lowest)) - 1u;
        const uint32_t bits = bits_of((x >= expected - window) & (x < expected + window)) & used;
        store_packed(&shift[n], (expected - x) / dx_dy, bits);
        store_packed(&hit[n], lane_numbers + lowest, bits);
        const uint8x32 mine = in_all_lanes<uint8x32>(1u << k);
        std::memcpy(&layer_bit[n], &mine, sizeof mine);
        n += static_cast<uint32_t>(__builtin_popcount(bits));
    }

    /// The shift with hits in most layers; of several, the most likely one. `n_agree`: number of these layers.
    float best_shift(float max_spread, float sigma, uint32_t& n_agree) const
    {
        float best_score = -1e9f, best = 0.f;
        n_agree = n_scifi_stereo_layers;
        for (uint32_t i = 0; i < n; i += n_wide) {
            float_wide shifts;
            load_wide(shifts, shift + i);
            uint_wide layers{};
            for (uint32_t j = 0; j < n; ++j)
                layers |= (uint_wide)(absolute(shift[j] - shifts) < max_spread) & layer_bit[j];
            // Number of set bits among the six.
            const uint_wide pairs = (layers & 0x15u) + (layers >> 1 & 0x15u);
            const uint_wide n_layers = (pairs & 3u) + (pairs >> 2 & 3u) + (pairs >> 4);
            const float_wide pull = shifts / sigma;
            const float_wide score = __builtin_convertvector((int_wide)n_layers, float_wide) - 0.25f * pull * pull;
            float score_of[n_wide];
            uint32_t layers_of[n_wide];
            store_wide(score_of, score);
            store_wide(layers_of, n_layers);
            const uint32_t n_now = min_of(n - i, n_wide);
            for (uint32_t l = 0; l < n_now; ++l) {
                const bool better = score_of[l] > best_score;
                best = better ? shift[i + l] : best;
                n_agree = better ? layers_of[l] : n_agree;
                best_score = better ? score_of[l] : best_score;
            }
        }
        return best;
    }
};

/// As add_stereo_hits of stereo_hits.cuh, for number i of a list.
inline bool add_stereo_hits(const long_track_parameters& parameters, const scifi_event& hits,
                            const candidate_list& list, uint32_t i, float where_shift, float sigma, uint32_t half,
                            const stereo_cuts& cuts, uint32_t min_hits, x_candidate& candidate, float& shift)
{
    stereo_hits_of_layers found;
    uint32_t n_layers = 0;
    for (uint32_t k = 0; k < n_scifi_stereo_layers; ++k) {
        const uint32_t before = found.n;
        found.add(hits, k, stereo_layer(k), half, parameters.layer_dx_dy[stereo_layer(k)], list.stereo_places[k][i],
                  list.stereo_windows[k][i]);
        n_layers += found.n != before ? 1u : 0u;
        if (candidate.n_hits + n_layers + n_scifi_stereo_layers - 1u - k < min_hits) return false;
    }

    uint32_t n_agree;
    const float best = found.best_shift(cuts.max_spread, sigma, n_agree);
    if (candidate.n_hits + n_agree < min_hits) return false;
    float closest[1u << n_scifi_stereo_layers];
    for (uint32_t k = 0; k < n_scifi_stereo_layers; ++k) closest[1u << k] = cuts.max_spread;
    uint32_t taken = 0;
    uint16_t hit_of[1u << n_scifi_stereo_layers];
    for (uint32_t j = 0; j < found.n; ++j) {
        float distance = found.shift[j] - best;
        distance = distance < 0.f ? -distance : distance;
        const uint32_t bit = found.layer_bit[j];
        if (distance < closest[bit]) {
            closest[bit] = distance;
            hit_of[bit] = static_cast<uint16_t>(found.hit[j]);
            taken |= bit;
        }
    }
    candidate.n_hits += static_cast<uint32_t>(__builtin_popcount(taken));
    for (uint32_t k = 0; k < n_scifi_stereo_layers; ++k)
        if ((taken >> k & 1u) != 0u) candidate.hits[stereo_layer(k)] = hit_of[1u << k];
    shift = where_shift + best;
    return candidate.n_hits >= min_hits;
}

}  // namespace hlt
