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

    /// As add_layer; `k`: the number of the layer among the stereo layers, `middle`: the first hit behind `expected`.
    void add(const scifi_event& hits, uint32_t k, const scifi_zone& zone, uint32_t middle, float dx_dy, float expected,
             float window)
    {
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

    /// Find the shift with hits in most layers; of several, the most likely one. Returns false if it has hits in fewer
    /// than `n_needed` layers. Without hits the shift is 0, and enough if none are needed.
    bool best_shift(float max_spread, float sigma, uint32_t n_needed, float& best) const
    {
        uint32_t layers_of[size], enough = 0;
        for (uint32_t i = 0; i < n; i += n_wide) {
            float_wide shifts;
            load_wide(shifts, shift + i);
            uint_wide layers{};
            for (uint32_t j = 0; j < n; ++j)
                layers |= (uint_wide)(absolute(shift[j] - shifts) < max_spread) & layer_bit[j];
            // Number of set bits among the six.
            const uint_wide pairs = (layers & 0x15u) + (layers >> 1 & 0x15u);
            const uint_wide n_layers = (pairs & 3u) + (pairs >> 2 & 3u) + (pairs >> 4);
            store_wide(layers_of + i, n_layers);
            enough |= bits_of(n_layers >= n_needed) & first_bits(n - i);
        }
        // At 40 collisions no shift of three candidates in four has enough layers.
        if (enough == 0u && n_needed != 0u) return false;
        float best_score = -1e9f;
        uint32_t n_agree = n_scifi_stereo_layers;
        best = 0.f;
        for (uint32_t i = 0; i < n; i += n_wide) {
            float_wide shifts;
            int_wide n_layers;
            load_wide(shifts, shift + i);
            load_wide(n_layers, layers_of + i);
            const float_wide pull = shifts / sigma;
            float score_of[n_wide];
            store_wide(score_of, __builtin_convertvector(n_layers, float_wide) - 0.25f * pull * pull);
            const uint32_t n_now = min_of(n - i, n_wide);
            for (uint32_t l = 0; l < n_now; ++l) {
                const bool better = score_of[l] > best_score;
                best = better ? shift[i + l] : best;
                n_agree = better ? layers_of[i + l] : n_agree;
                best_score = better ? score_of[l] : best_score;
            }
        }
        return n_agree >= n_needed;
    }
};

/// Places of the stereo hits of n_wide candidates.
struct stereo_places {
    float expected[n_scifi_stereo_layers][n_wide], window[n_scifi_stereo_layers][n_wide];  // mm
    uint32_t middle[n_scifi_stereo_layers][n_wide];  // the first hit behind the expected place

    /// Find them for the sets of hits from `base` on. Returns the candidates that have hits in enough layers.
    uint32_t find(const long_track_parameters& parameters, const scifi_event& hits, const uint_wide& half,
                  const kink_error& sigma_shift, const stereo_cuts& cuts, uint32_t min_hits, const x_hit_sets& sets,
                  uint32_t base)
    {
        const of_track_in_lane of(sets.track + base);
        const uint_wide half_of = of(half);
        float_wide kink;
        uint_wide n_hits;
        load_wide(kink, sets.kink + base);
        load_wide(n_hits, sets.n_hits + base);
        const float_wide width = stereo_window_sigmas * sigma_shift(kink);
        for (uint32_t k = 0; k < n_scifi_stereo_layers; ++k) {
            const uint32_t layer_number = stereo_layer(k);
            const scifi_layer_wide layer(hits, layer_number);
            float_wide at;
            load_wide(at, sets.stereo_places[k] + base);
            const float_wide within = width * absolute(parameters.layer_dx_dy[layer_number]) + cuts.margin;
            const scifi_layer_wide::place_of_x place = layer.from(half_of, at);
            n_hits -= (uint_wide)layer.has_hit(place, at - within, at + within);
            store_wide(expected[k], at);
            store_wide(window[k], within);
            store_wide(middle[k], place.at);
        }
        return bits_of(n_hits >= min_hits) & first_bits(sets.n - base);
    }
};

/// As add_stereo_hits of stereo_hits.cuh, for the candidate in lane l of `places`.
inline bool add_stereo_hits(const long_track_parameters& parameters, const scifi_event& hits,
                            const stereo_places& places, uint32_t l, float where_shift, float sigma, uint32_t half,
                            const stereo_cuts& cuts, uint32_t min_hits, x_candidate& candidate, float& shift)
{
    stereo_hits_of_layers found;
    for (uint32_t k = 0; k < n_scifi_stereo_layers; ++k)
        found.add(hits, k, scifi_zone(hits, stereo_layer(k), half), places.middle[k][l],
                  parameters.layer_dx_dy[stereo_layer(k)], places.expected[k][l], places.window[k][l]);
    float best;
    const uint32_t n_needed = max_of(min_hits, candidate.n_hits) - candidate.n_hits;
    if (!found.best_shift(cuts.max_spread, sigma, n_needed, best)) return false;
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

/// Call `complete(candidate, places, l, i)` for each set of hits that has hits in enough stereo layers, in order: it is
/// in lane l of `places` and has number i in `list`.
template <typename Complete>
void complete_sets(const long_track_parameters& parameters, const scifi_event& hits, const uint_wide& half,
                   const kink_error& sigma_shift, const layer_seed& layers, const stereo_cuts& cuts, uint32_t min_hits,
                   const candidate_list& list, const x_hit_sets& sets, const Complete& complete)
{
    stereo_places places;
    for (uint32_t base = 0; base < sets.n; base += n_wide) {
        const uint32_t enough = places.find(parameters, hits, half, sigma_shift, cuts, min_hits, sets, base);
        for (uint32_t these = enough; these != 0u; these &= these - 1u) {
            const uint32_t l = lowest_bit(these), set = base + l, i = sets.number[set];
            x_candidate candidate;
            for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) candidate.hits[layer] = no_scifi_hit;
            candidate.hits[layers.first] = static_cast<uint16_t>(list.hits[i] >> 16u);
            candidate.hits[layers.last] = static_cast<uint16_t>(list.hits[i]);
            for (uint32_t k = 0; k < n_other_x_layers; ++k)
                candidate.hits[layers.others[k]] = static_cast<uint16_t>(sets.others[k][set]);
            candidate.n_hits = sets.n_hits[set];
            candidate.kink = list.of_bend[0][i];
            candidate.offset = list.offset[i];
            complete(candidate, places, l, i);
        }
    }
}

}  // namespace hlt
