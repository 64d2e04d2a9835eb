// Tracks in arrays, pairs of a track and a hit, and the fit of a vector of pairs: parts of extend_tracks_cpu.h.
#pragma once

#include "framework/device/wide_lanes.h"
#include "mu3e/tracks/extend_tracks.cuh"

namespace hlt {

constexpr uint32_t tracks_at_once = 64, pairs_at_once = 256;

struct position_lanes {
    float x[tracks_at_once], y[tracks_at_once], z[tracks_at_once];

    inline void set(uint32_t t, const lane_position<float>& to)
    {
        x[t] = to.x;
        y[t] = to.y;
        z[t] = to.z;
    }
    inline lane_position<float> at(uint32_t t) const { return {x[t], y[t], z[t]}; }
};

inline __attribute__((always_inline)) lane_position<float_wide> loaded(const position_lanes& from, uint32_t t)
{
    lane_position<float_wide> found;
    load_wide(found.x, from.x + t);
    load_wide(found.y, from.y + t);
    load_wide(found.z, from.z + t);
    return found;
}

/// The terms of one triplet of each track that chi2 needs.
struct terms_lanes {
    float phi[tracks_at_once], eta[tracks_at_once], theta[tracks_at_once], beta[tracks_at_once];
    float square_sine[tracks_at_once], variance[tracks_at_once];
};

/// Fits of tracks: sums over their triplets, the radius in space, and chi2.
struct fit_lanes {
    float square[tracks_at_once], linear[tracks_at_once], radius[tracks_at_once], chi2[tracks_at_once];
};

/// Tracks of which each has a triplet, and then up to two more.
struct track_block {
    uint32_t n;                                        // loops over whole vectors repeat the last track
    position_lanes first, middle, last, before, from;  // before, from: the last two hits of the central part
    int32_t time[tracks_at_once];                      // of the first hit
    float turn[tracks_at_once];
    terms_lanes inner, outer;
    fit_lanes alone, central;
    float has_outer[tracks_at_once];  // 1 or 0
    uint32_t layer3[tracks_at_once], recurl[tracks_at_once];
    float recurl_radius[tracks_at_once], recurl_chi2[tracks_at_once];

    inline uint32_t whole_vectors() const { return (n + n_wide - 1u) / n_wide * n_wide; }
    inline uint32_t n_triplets(uint32_t t) const
    {
        return (layer3[t] == no_pixel ? 1u : 2u) + (recurl[t] == no_pixel ? 0u : 1u);
    }
};

/// Pairs of a track and a hit that are compared or fitted together, with room for a vector more.
struct pair_list {
    uint32_t n = 0;
    uint32_t track[pairs_at_once + n_wide], hit[pairs_at_once + n_wide];

    inline bool is_full() const { return n > pairs_at_once - n_wide; }
    /// Add the hits of one track whose bits are set.
    inline __attribute__((always_inline)) void add_of(uint32_t of_track, const uint_wide& hits, uint32_t bits)
    {
        store_wide(track + n, in_all_lanes<uint_wide>(of_track));
        store_packed_wide(hit + n, hits, bits);
        n += static_cast<uint32_t>(__builtin_popcount(bits));
    }
    /// Add the lanes whose bits are set.
    inline __attribute__((always_inline)) void add(const uint_wide& tracks, const uint_wide& hits, uint32_t bits)
    {
        store_packed_wide(track + n, tracks, bits);
        store_packed_wide(hit + n, hits, bits);
        n += static_cast<uint32_t>(__builtin_popcount(bits));
    }
    /// Fill the vector behind the last pair with copies of that pair.
    inline void repeat_last()
    {
        if (n == 0u) return;
        store_wide(track + n, in_all_lanes<uint_wide>(track[n - 1u]));
        store_wide(hit + n, in_all_lanes<uint_wide>(hit[n - 1u]));
    }
};

/// Hits of an event with room behind the last one for a whole vector.
struct hit_lanes {
    float x[mu3e_max_hits + n_wide], y[mu3e_max_hits + n_wide], z[mu3e_max_hits + n_wide];
};

/// The hits of a group around a time. Times of tracks hardly decrease, so the borders are near those of the last call.
struct hits_around {
    const uint64_t* word;
    uint32_t first, last, begin, end;

    inline hits_around(const event_hits& hits, uint32_t group)
        : word(hits.word), first(hits.begin[group]), last(hits.begin[group + 1u]), begin(first), end(first)
    {
    }
    /// Move a border to the first hit at `time` or later.
    inline uint32_t moved(uint32_t border, int32_t time) const
    {
        while (border > first && time_of(border - 1u) >= time) --border;
        while (border < last && time_of(border) < time) ++border;
        return border;
    }
    inline void move(int32_t time, int32_t window)
    {
        begin = moved(begin, time - window + 1);
        end = moved(end, time + window);
    }
    inline int32_t time_of(uint32_t hit) const { return static_cast<int32_t>(time_of_hit(word[hit])); }
};

/// Values of the tracks of a vector of pairs.
inline __attribute__((always_inline)) float_wide of_tracks(const float* values, const uint32_t* tracks)
{
    float of[n_wide];
    for (uint32_t l = 0; l < n_wide; ++l) of[l] = values[tracks[l]];
    float_wide found;
    load_wide(found, of);
    return found;
}

inline __attribute__((always_inline)) lane_position<float_wide> of_tracks(const position_lanes& from,
                                                                          const uint32_t* tracks)
{
    return {of_tracks(from.x, tracks), of_tracks(from.y, tracks), of_tracks(from.z, tracks)};
}

/// Positions of the hits of a vector of pairs.
inline __attribute__((always_inline)) lane_position<float_wide> of_hits(const hit_lanes& from, const uint32_t* hits)
{
    return {of_tracks(from.x, hits), of_tracks(from.y, hits), of_tracks(from.z, hits)};
}

inline __attribute__((always_inline)) float_wide chi2_of_tracks(const terms_lanes& terms, const uint32_t* tracks,
                                                                const float_wide& radius)
{
    triplet_terms<float_wide> of{};
    of.phi = of_tracks(terms.phi, tracks);
    of.eta = of_tracks(terms.eta, tracks);
    of.theta = of_tracks(terms.theta, tracks);
    of.beta = of_tracks(terms.beta, tracks);
    of.square_sine = of_tracks(terms.square_sine, tracks);
    of.variance = of_tracks(terms.variance, tracks);
    return chi2_at(of, radius);
}

/// Values of a vector of pairs.
struct fitted_pairs {
    float phi[n_wide], eta[n_wide], theta[n_wide], beta[n_wide], square_sine[n_wide], variance[n_wide];
    float square[n_wide], linear[n_wide], radius[n_wide], chi2[n_wide];
    uint32_t turns;  // bit l: the added triplet turns as the track does
};

/// Terms of a track from those of pair l.
inline void set_terms(terms_lanes& to, uint32_t t, const fitted_pairs& fits, uint32_t l)
{
    to.phi[t] = fits.phi[l];
    to.eta[t] = fits.eta[l];
    to.theta[t] = fits.theta[l];
    to.beta[t] = fits.beta[l];
    to.square_sine[t] = fits.square_sine[l];
    to.variance[t] = fits.variance[l];
}

/// Fit the triplets of hits a and b of tracks with the hits of pairs, together with the earlier triplets of the tracks.
template <bool has_outer>
inline void fit_pairs(const track_block& tracks, const hit_lanes& hits, const fit_errors& errors,
                      const position_lanes& a, const position_lanes& b, const fit_lanes& earlier, const uint32_t* track,
                      const uint32_t* hit, fitted_pairs& found)
{
    const triplet_terms<float_wide> added =
        terms_of_triplet(of_tracks(a, track), of_tracks(b, track), of_hits(hits, hit), errors);
    const radius_sums<float_wide> sums = sums_of(added);
    const float_wide square = of_tracks(earlier.square, track) + sums.square,
                     linear = of_tracks(earlier.linear, track) + sums.linear, radius = -linear / square;
    float_wide chi2 = chi2_of_tracks(tracks.inner, track, radius);
    if constexpr (has_outer) {
        const float_wide with_outer = chi2 + chi2_of_tracks(tracks.outer, track, radius);
        chi2 = of_tracks(tracks.has_outer, track) > 0.f ? with_outer : chi2;
    }
    chi2 += chi2_at(added, radius);
    store_wide(found.phi, added.phi);
    store_wide(found.eta, added.eta);
    store_wide(found.theta, added.theta);
    store_wide(found.beta, added.beta);
    store_wide(found.square_sine, added.square_sine);
    store_wide(found.variance, added.variance);
    store_wide(found.square, square);
    store_wide(found.linear, linear);
    store_wide(found.radius, radius);
    store_wide(found.chi2, chi2);
    found.turns = bits_where<wide_comparison::less>(float_wide{}, added.turn * of_tracks(tracks.turn, track));
}

/// Call found(track, hit, l, fits) for each pair of a list in its order, a vector of pairs at a time, and empty the
/// list. Lanes behind the last pair repeat it.
template <bool has_outer, typename Found>
inline void for_fitted_pairs(pair_list& pairs, const track_block& tracks, const hit_lanes& hits,
                             const fit_errors& errors, const position_lanes& a, const position_lanes& b,
                             const fit_lanes& earlier, const Found& found)
{
    pairs.repeat_last();
    for (uint32_t begin = 0; begin < pairs.n; begin += n_wide) {
        const uint32_t n_here = min_of(pairs.n - begin, n_wide);
        const uint32_t *const track = pairs.track + begin, *const hit = pairs.hit + begin;
        fitted_pairs fits;
        fit_pairs<has_outer>(tracks, hits, errors, a, b, earlier, track, hit, fits);
        for (uint32_t turning = fits.turns & first_bits(n_here); turning != 0u; turning &= turning - 1u) {
            const uint32_t l = lowest_bit(turning);
            found(track[l], hit[l], l, fits);
        }
    }
    pairs.n = 0;
}

}  // namespace hlt
