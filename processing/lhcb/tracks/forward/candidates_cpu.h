// From pairs of x hits to candidates on the CPU (x_hits.cuh), with a pair of any track in each lane. Pairs are kept if
// the other x layers, then the stereo layers, may have enough hits. Then the nearest hits of the other x layers are
// found.
#pragma once

#include "lhcb/tracks/forward/pairs_cpu.h"
#include "lhcb/tracks/forward/stereo_hits.cuh"

namespace hlt {

/// Of each lane.
inline __attribute__((always_inline)) uint_wide bits_set(uint_wide words)
{
    words -= words >> 1 & 0x55555555u;
    words = (words & 0x33333333u) + (words >> 2 & 0x33333333u);
    return ((words + (words >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}

inline __attribute__((always_inline)) float_wide floats_at(const float* column, const uint_wide& place)
{
    return (float_wide)words_at(reinterpret_cast<const uint32_t*>(column), place * 4u);
}

/// The hits of one layer in both halves.
class scifi_layer_wide {
  public:
    scifi_layer_wide(const scifi_event& hits, uint32_t layer)
        : x_(&hits.x[0]),
          bins_(&hits.bins[2u * layer * scifi_bin_stride]),
          cells_(&hits.cells[2u * layer * n_scifi_bins])
    {
    }

    /// The place of x among the hits of the half of each lane, which ascend.
    struct place_of_x {
        uint_wide begin, end;  // of the hits of the half
        uint_wide at;          // as scifi_zone::from
        float_wide x_at;       // of this hit, any value if at is end
    };

    inline __attribute__((always_inline)) place_of_x from(const uint_wide& half, const float_wide& x) const
    {
        const int_wide upper = half != 0u;
        const uint_wide begin = upper ? uint_wide{} + bins_[scifi_bin_stride] : uint_wide{} + bins_[0];
        const uint_wide end =
            upper ? uint_wide{} + bins_[scifi_bin_stride + n_scifi_bins] : uint_wide{} + bins_[n_scifi_bins];
        const uint_wide cell = cells_of(x), bin = cell / scifi_cells_per_bin;
        const uint_wide before_cell = (uint_wide{} + 1u) << cell % scifi_cells_per_bin;
        const uint_wide cells_before = words_at(cells_, (half * n_scifi_bins + bin) * 4u) & (before_cell - 1u);
        uint_wide at =
            words_at(reinterpret_cast<const uint32_t*>(bins_), (half * scifi_bin_stride + bin) * 2u) & 0xffffu;
        at += bits_set(cells_before);
        float_wide x_at;
        for (;;) {
            x_at = floats_at(x_, at);
            const int_wide behind = (x_at < x) & (at < end);
            if (bits_of(behind) == 0u) break;
            at -= (uint_wide)behind;
        }
        return {begin, end, at, x_at};
    }

    /// As scifi_zone::nearest, for each lane.
    inline __attribute__((always_inline)) uint_wide nearest(const uint_wide& half, const float_wide& x,
                                                            const float_wide& most) const
    {
        const place_of_x place = from(half, x);
        const uint_wide before = hit_before(place);
        const float_wide above = place.at < place.end ? place.x_at - x : most;
        const float_wide below = place.at > place.begin ? x - floats_at(x_, before) : most;
        const int_wide is_above = (above < most) & ~((below < most) & (below <= above));
        const uint_wide none = uint_wide{} + no_scifi_hit;
        return is_above ? place.at : below < most ? before : none;
    }

    /// For each lane: true if a hit has x in [low, high). `place`: of a position between them.
    inline __attribute__((always_inline)) int_wide has_hit(const place_of_x& place, const float_wide& low,
                                                           const float_wide& high) const
    {
        const float_wide x_before = floats_at(x_, hit_before(place));
        return ((place.at < place.end) & (place.x_at >= low) & (place.x_at < high)) |
               ((place.at > place.begin) & (x_before >= low) & (x_before < high));
    }

  private:
    inline __attribute__((always_inline)) uint_wide hit_before(const place_of_x& place) const
    {
        return (place.at > place.begin + 1u ? place.at : place.begin + 1u) - 1u;
    }

    const float* x_;
    const uint16_t* bins_;
    const uint32_t* cells_;
};

/// Pairs that may have enough hits in the x layers.
struct kept_pairs {
    static constexpr uint32_t size = x_pair_list::size;
    uint32_t hits[size], track[size], n_layers[size];
    float dx[size], rise[size], kink[size];
    uint32_t n;
};

/// Keep the pairs that may have enough hits in the other x layers, in their order. `half`: of each track.
inline void keep_pairs(const scifi_event& hits, const velo_tracks_in_lanes& tracks, const uint_wide& half,
                       const x_seed_of<float_wide>& seed, const forward_cuts& cuts, const x_pair_list& pairs,
                       kept_pairs& kept)
{
    const uint32_t* const cells = &hits.cells[0];
    const auto may_have_hit = [&](uint32_t k, const of_track_in_lane& of, const float_wide& dx, const float_wide& rise,
                                  const float_wide& most) -> uint_wide {
        const float_wide place = of(seed.straight[k]) + dx + rise * of(seed.share[k])(rise);
        return (uint_wide)may_have_hit_wide(cells, 2u * seed.layers.others[k] + of(half), place, most);
    };
    // First the layers between.
    uint32_t n = 0;
    for (uint32_t base = 0; base < pairs.n; base += n_wide) {
        const of_track_in_lane of(pairs.track + base);
        float_wide dx, x_last;
        uint_wide pair;
        load_wide(dx, pairs.dx + base);
        load_wide(x_last, pairs.x_last + base);
        load_wide(pair, pairs.hits + base);
        const float_wide rise = x_last - of(seed.straight_last) - dx;
        const float_wide kink = rise * of(seed.kink_per_rise)(rise);
        const float_wide most = cuts.x_window(kink);
        uint_wide n_layers = uint_wide{} + 2u;
        for (uint32_t k = 0; k < 2u; ++k) n_layers -= may_have_hit(k, of, dx, rise, most);
        const uint32_t bits = bits_of(n_layers != 2u) & first_bits(pairs.n - base) &
                              bits_where<wide_comparison::at_least>(kink, of(tracks.where.low)) &
                              bits_where<wide_comparison::at_most>(kink, of(tracks.where.high));
        store_packed_wide(kept.hits + n, pair, bits);
        store_packed_wide(kept.track + n, of.tracks(), bits);
        store_packed_wide(kept.n_layers + n, n_layers, bits);
        store_packed_wide(kept.dx + n, dx, bits);
        store_packed_wide(kept.rise + n, rise, bits);
        store_packed_wide(kept.kink + n, kink, bits);
        n += static_cast<uint32_t>(__builtin_popcount(bits));
    }
    kept.n = 0;
    for (uint32_t base = 0; base < n; base += n_wide) {
        const of_track_in_lane of(kept.track + base);
        float_wide dx, rise, kink;
        uint_wide pair, n_layers;
        load_wide(dx, kept.dx + base);
        load_wide(rise, kept.rise + base);
        load_wide(kink, kept.kink + base);
        load_wide(pair, kept.hits + base);
        load_wide(n_layers, kept.n_layers + base);
        const float_wide most = cuts.x_window(kink);
        for (uint32_t k = 2u; k < n_other_x_layers; ++k) n_layers -= may_have_hit(k, of, dx, rise, most);
        const uint32_t bits = bits_of(n_layers >= 4u) & first_bits(n - base);
        store_packed_wide(kept.hits + kept.n, pair, bits);
        store_packed_wide(kept.track + kept.n, of.tracks(), bits);
        store_packed_wide(kept.n_layers + kept.n, n_layers, bits);
        store_packed_wide(kept.dx + kept.n, dx, bits);
        store_packed_wide(kept.rise + kept.n, rise, bits);
        store_packed_wide(kept.kink + kept.n, kink, bits);
        kept.n += static_cast<uint32_t>(__builtin_popcount(bits));
    }
}

/// Pairs that may have enough hits in all layers, and their data.
struct candidate_list {
    static constexpr uint32_t max = 64;
    static constexpr uint32_t size = max + 2u * n_wide;
    uint32_t hits[size], track[size];
    float of_bend[6][size];                            // bend_functions in their order
    float offset[size];                                // as in x_candidate
    float places[n_other_x_layers][size];              // mm, in the other x layers
    float stereo_places[n_scifi_stereo_layers][size];  // mm
    uint32_t n_stereo[size];                           // layers that may have hits
    uint32_t n = 0;
};

/// Add the pairs that may have enough hits, stereo layers included, to a list; `complete()` empties it when it is full.
/// `left`: remaining number of pairs of each track.
template <typename Complete>
void add_candidates(const long_track_parameters& parameters, const scifi_event& hits,
                    const velo_tracks_in_lanes& tracks, const uint_wide& half, const track_bend_of<float_wide>& bend,
                    const x_seed_of<float_wide>& seed, const stereo_cuts& stereo, uint32_t min_hits,
                    const kept_pairs& kept, uint32_t* left, candidate_list& list, const Complete& complete)
{
    const uint32_t* const cells = &hits.cells[0];
    for (uint32_t base = 0; base < kept.n; base += n_wide) {
        const of_track_in_lane of(kept.track + base);
        float_wide dx, rise, kink;
        uint_wide n_x_layers, n_stereo{};
        load_wide(dx, kept.dx + base);
        load_wide(rise, kept.rise + base);
        load_wide(kink, kept.kink + base);
        load_wide(n_x_layers, kept.n_layers + base);
        const bend_functions<float_wide> at = of(bend, kink);
        const velo_line_of<float_wide> line = of(tracks.line);
        const float_wide offset = dx - kink * at.lever(of(seed.z_first)) + of(tracks.where.offset);
        const forward_hypothesis_of<float_wide> where{
            {}, {}, {}, {}, of(tracks.where.shift), tracks.where.sigma_offset, tracks.where.sigma_shift};
        const uint_wide half_of = of(half);
        float_wide expected[n_scifi_stereo_layers];
        for (uint32_t k = 0; k < n_scifi_stereo_layers; ++k) {
            const uint32_t layer = stereo_layer(k);
            const float_wide none{};
            float_wide window;
            expect_stereo_hit(line, at, where, stereo, offset, none + parameters.layer_z[layer],
                              none + parameters.layer_dx_dy[layer], none + parameters.layer_dz_dy[layer], expected[k],
                              window);
            n_stereo -= (uint_wide)may_have_hit_wide(cells, 2u * layer + half_of, expected[k], window);
        }
        uint32_t bits = bits_of(n_x_layers + n_stereo >= min_hits) & first_bits(kept.n - base);
        if (bits == 0u) continue;
        for (uint32_t these = bits; these != 0u; these &= these - 1u) {
            uint32_t& left_of_track = left[kept.track[base + lowest_bit(these)]];
            if (left_of_track == 0u)
                bits &= ~(these & -these);
            else
                --left_of_track;
        }
        uint_wide pair;
        load_wide(pair, kept.hits + base);
        const auto add = [&](auto* column, const auto& lanes) { store_packed_wide(column + list.n, lanes, bits); };
        add(list.hits, pair);
        add(list.track, of.tracks());
        const float_wide of_bend[6] = {at.kink, at.z_magnet, at.curvature, at.cubic, at.y_shift, at.y_slope};
        for (uint32_t i = 0; i < 6u; ++i) add(list.of_bend[i], of_bend[i]);
        add(list.offset, offset);
        for (uint32_t k = 0; k < n_other_x_layers; ++k)
            add(list.places[k], of(seed.straight[k]) + dx + rise * of(seed.share[k])(rise));
        for (uint32_t k = 0; k < n_scifi_stereo_layers; ++k) add(list.stereo_places[k], expected[k]);
        add(list.n_stereo, n_stereo);
        list.n += static_cast<uint32_t>(__builtin_popcount(bits));
        if (list.n > candidate_list::max) complete();
    }
}

/// Candidates of a list that have hits in enough x layers.
struct x_hit_sets {
    static constexpr uint32_t size = candidate_list::size;
    uint32_t number[size];  // in the list
    uint32_t track[size];
    uint32_t others[n_other_x_layers][size];  // hits, or no_scifi_hit
    uint32_t n_hits[size];
    float kink[size];
    float stereo_places[n_scifi_stereo_layers][size];  // mm
    uint32_t n;
};

/// Find the hits of the other x layers. Candidates stay, in order, if they and the stereo layers that may have hits
/// reach `min_hits`.
inline void find_nearest_hits(const scifi_event& hits, const uint_wide& half, const layer_seed& layers,
                              const forward_cuts& cuts, uint32_t min_hits, const candidate_list& list, x_hit_sets& sets)
{
    sets.n = 0;
    for (uint32_t base = 0; base < list.n; base += n_wide) {
        const of_track_in_lane of(list.track + base);
        float_wide kink;
        uint_wide n_stereo;
        load_wide(kink, list.of_bend[0] + base);
        load_wide(n_stereo, list.n_stereo + base);
        const float_wide most = cuts.x_window(kink);
        const uint_wide half_of = of(half), none = uint_wide{} + no_scifi_hit;
        uint_wide found[n_other_x_layers], n_hits = uint_wide{} + 2u;
        for (uint32_t k = 0; k < n_other_x_layers; ++k) {
            float_wide place;
            load_wide(place, list.places[k] + base);
            found[k] = scifi_layer_wide(hits, layers.others[k]).nearest(half_of, place, most);
            n_hits -= (uint_wide)(found[k] != none);
        }
        // One of the layers between is needed. The second seed finds the candidates of the first one again.
        int_wide wanted = (n_hits >= 4u) & (n_hits + n_stereo >= min_hits) & ((found[0] != none) | (found[1] != none));
        if (layers.first != 0u) wanted &= (found[2] == none) | (found[3] == none);
        const uint32_t bits = bits_of(wanted) & first_bits(list.n - base);
        if (bits == 0u) continue;
        const auto add = [&](auto* column, const auto& lanes) { store_packed_wide(column + sets.n, lanes, bits); };
        add(sets.number, wide_numbers + base);
        add(sets.track, of.tracks());
        for (uint32_t k = 0; k < n_other_x_layers; ++k) add(sets.others[k], found[k]);
        add(sets.n_hits, n_hits);
        add(sets.kink, kink);
        for (uint32_t k = 0; k < n_scifi_stereo_layers; ++k) {
            float_wide place;
            load_wide(place, list.stereo_places[k] + base);
            add(sets.stereo_places[k], place);
        }
        sets.n += static_cast<uint32_t>(__builtin_popcount(bits));
    }
}

}  // namespace hlt
