// The extension of the common kernel with a pair of a track and a hit in each lane of a vector.
//
// Tracks are taken 64 at a time. Vectors of hits near the time of a track are compared with it, and those that pass are
// listed as pairs; a vector of pairs is then fitted at once. Pairs of a track keep the order of the common kernel, so
// that of two equal chi2 the same hit is taken. Bounds: mu3e_max_tracks, mu3e_max_hits; a full list of pairs is fitted
// and emptied.
#pragma once

#include "mu3e/tracks/pair_fits_cpu.h"

namespace hlt {

inline __attribute__((always_inline)) uint32_t bits_inside(const float_wide& value, float limit)
{
    const float_wide limits = in_all_lanes<float_wide>(limit);
    return bits_where<wide_comparison::at_most>(value, limits) & bits_where<wide_comparison::at_most>(-value, limits);
}

inline __attribute__((always_inline)) lane_position<float_wide> positions_from(const hit_lanes& hits, uint32_t h)
{
    lane_position<float_wide> found;
    load_wide(found.x, hits.x + h);
    load_wide(found.y, hits.y + h);
    load_wide(found.z, hits.z + h);
    return found;
}

/// Bounds of the hits that may be near a helix. They need no angle.
struct helix_bounds {
    float centre_x, centre_y, from_centre_x, from_centre_y;
    float least, most;    // squares of distances from the centre
    float square_cosine;  // most of the square of the scalar product, over the square of a distance
    float low, high;      // heights

    /// Bits of the hits from h on that may be near: no other hit is.
    inline __attribute__((always_inline)) uint32_t bits_inside_all(const hit_lanes& hits, uint32_t h, float max_z) const
    {
        const lane_position<float_wide> at = positions_from(hits, h);
        const float_wide vx = at.x - centre_x, vy = at.y - centre_y, square = vx * vx + vy * vy;
        const float_wide along = vx * from_centre_x + vy * from_centre_y;
        return bits_where<wide_comparison::at_most>(square, in_all_lanes<float_wide>(most)) &
               bits_where<wide_comparison::at_least>(square, in_all_lanes<float_wide>(least)) &
               bits_where<wide_comparison::at_most>(along * absolute(along), square * square_cosine) &
               bits_where<wide_comparison::at_most>(at.z - high, in_all_lanes<float_wide>(max_z)) &
               bits_where<wide_comparison::at_most>(low - at.z, in_all_lanes<float_wide>(max_z));
    }
};

/// Helices behind tracks, and their bounds.
struct helix_block {
    float centre_x[tracks_at_once], centre_y[tracks_at_once], radius[tracks_at_once], slope[tracks_at_once],
        from_x[tracks_at_once], from_y[tracks_at_once], z[tracks_at_once], turn[tracks_at_once];
    float least[tracks_at_once], most[tracks_at_once], square_cosine[tracks_at_once], low[tracks_at_once],
        high[tracks_at_once];

    inline void set(uint32_t t, const leaving_helix<float_wide>& of, float max_xy)
    {
        store_wide(centre_x + t, of.centre_x);
        store_wide(centre_y + t, of.centre_y);
        store_wide(radius + t, of.radius);
        store_wide(slope + t, of.slope);
        store_wide(from_x + t, of.from_x);
        store_wide(from_y + t, of.from_y);
        store_wide(z + t, of.z);
        store_wide(turn + t, of.turn);
        // Angles with a larger cosine are below min_recurl_angle or above max_recurl_angle, with room for the error of
        // atan2_approximate.
        constexpr float square = min_recurl_angle * min_recurl_angle,
                        cosine = 1.f - square / 2.f + square * square / 24.f;
        const float_wide wx = of.from_x - of.centre_x, wy = of.from_y - of.centre_y;
        store_wide(square_cosine + t, (wx * wx + wy * wy) * (cosine * cosine + 0.005f));
        const float_wide inner = of.radius - max_xy, outer = of.radius + max_xy;
        const float_wide limited = inner < 0.f ? float_wide{} : inner;
        store_wide(least + t, limited * limited);
        store_wide(most + t, outer * outer);
        // Rounding keeps the order of heights, so these bounds are exact.
        const float_wide one = height_at(of, in_all_lanes<float_wide>(min_recurl_angle)),
                         other = height_at(of, in_all_lanes<float_wide>(max_recurl_angle));
        store_wide(low + t, other < one ? other : one);
        store_wide(high + t, other < one ? one : other);
    }
    inline leaving_helix<float_wide> of(const uint32_t* tracks) const
    {
        return {of_tracks(centre_x, tracks), of_tracks(centre_y, tracks), of_tracks(radius, tracks),
                of_tracks(slope, tracks),    of_tracks(from_x, tracks),   of_tracks(from_y, tracks),
                of_tracks(z, tracks),        of_tracks(turn, tracks)};
    }
    static inline __attribute__((always_inline)) float_wide height_at(const leaving_helix<float_wide>& of,
                                                                      const float_wide& angle)
    {
        return angle * of.radius * of.slope + of.z;
    }
    inline helix_bounds bounds(uint32_t t) const
    {
        return {centre_x[t], centre_y[t], from_x[t] - centre_x[t], from_y[t] - centre_y[t],
                least[t],    most[t],     square_cosine[t],        low[t],
                high[t]};
    }
};

/// Move those of the listed pairs that is_near finds to `near`, and empty the list; full() empties `near`.
template <typename Full>
inline void keep_near(pair_list& listed, const helix_block& helices, const hit_lanes& hits, float max_z,
                      pair_list& near, const Full& full)
{
    listed.repeat_last();
    for (uint32_t begin = 0; begin < listed.n; begin += n_wide) {
        const leaving_helix<float_wide> helix = helices.of(listed.track + begin);
        const lane_position<float_wide> at = of_hits(hits, listed.hit + begin);
        const float_wide angle = angle_along(helix, at), away = at.z - helix_block::height_at(helix, angle);
        const uint32_t bits = first_bits(listed.n - begin) & bits_inside(away, max_z) &
                              bits_where<wide_comparison::at_least>(angle, in_all_lanes<float_wide>(min_recurl_angle)) &
                              bits_where<wide_comparison::at_most>(angle, in_all_lanes<float_wide>(max_recurl_angle));
        if (near.is_full()) full();
        uint_wide track, hit;
        load_wide(track, listed.track + begin);
        load_wide(hit, listed.hit + begin);
        near.add(track, hit, bits);
    }
    listed.n = 0;
}

/// List pairs of a track with those hits of a range whose bits bits_of_hits(h) sets; full() empties the list.
template <typename Bits, typename Full>
inline void list_pairs(pair_list& pairs, uint32_t t, uint32_t begin, uint32_t end, const Bits& bits_of_hits,
                       const Full& full)
{
    for (uint32_t h = begin; h < end; h += n_wide) {
        if (pairs.is_full()) full();
        pairs.add_of(t, wide_numbers + h, bits_of_hits(h) & first_bits(end - h));
    }
}

/// The triplets of tracks, fitted alone. Lanes behind the last track repeat it.
inline void start_tracks(track_block& of, const event_hits& hits, const uint64_t* fitted, const fit_errors& errors)
{
    for (uint32_t t = 0; t < of.whole_vectors(); ++t) {
        const uint64_t triplet = fitted[min_of(t, of.n - 1u)];
        const uint32_t i = hit_of_triplet(triplet, 0), j = hit_of_triplet(triplet, 1), k = hit_of_triplet(triplet, 2);
        of.first.set(t, position_at(hits, i));
        of.middle.set(t, position_at(hits, j));
        of.last.set(t, position_at(hits, k));
        of.time[t] = static_cast<int32_t>(
            min_of(time_of_hit(hits.word[i]), min_of(time_of_hit(hits.word[j]), time_of_hit(hits.word[k]))));
        of.layer3[t] = of.recurl[t] = no_pixel;
    }
    for (uint32_t t = 0; t < of.n; t += n_wide) {
        const triplet_terms<float_wide> terms =
            terms_of_triplet(loaded(of.first, t), loaded(of.middle, t), loaded(of.last, t), errors);
        const radius_sums<float_wide> sums = sums_of(terms);
        const float_wide zero{}, square = zero + sums.square, linear = zero + sums.linear, radius = -linear / square,
                                 one = in_all_lanes<float_wide>(1.f);
        store_wide(of.inner.phi + t, terms.phi);
        store_wide(of.inner.eta + t, terms.eta);
        store_wide(of.inner.theta + t, terms.theta);
        store_wide(of.inner.beta + t, terms.beta);
        store_wide(of.inner.square_sine + t, terms.square_sine);
        store_wide(of.inner.variance + t, terms.variance);
        store_wide(of.alone.square + t, square);
        store_wide(of.alone.linear + t, linear);
        store_wide(of.alone.radius + t, radius);
        store_wide(of.alone.chi2 + t, chi2_at(terms, radius));
        const float_wide turn = terms.turn < 0.f ? -one : one;
        store_wide(of.turn + t, turn);
    }
    of.central = of.alone;
    of.outer = {};
}

/// Add the hits of layer 3.
template <typename Parameters>
inline void add_outer_hits(const Parameters& p, track_block& of, const event_hits& hits, const hit_lanes& places,
                           hits_around& near, pair_list& pairs)
{
    const fit_errors errors = errors_of(p);
    for (uint32_t t = 0; t < of.n; ++t) of.central.chi2[t] = p.max_chi2_long;
    const auto fit = [&] {
        for_fitted_pairs<false>(pairs, of, places, errors, of.middle, of.last, of.alone,
                                [&](uint32_t t, uint32_t hit, uint32_t l, const fitted_pairs& fits) {
                                    if (!(fits.chi2[l] < of.central.chi2[t])) return;
                                    of.layer3[t] = hit;
                                    of.central.chi2[t] = fits.chi2[l];
                                    of.central.radius[t] = fits.radius[l];
                                    of.central.square[t] = fits.square[l];
                                    of.central.linear[t] = fits.linear[l];
                                    set_terms(of.outer, t, fits, l);
                                });
    };
    const float square_xy = p.max_xy23 * p.max_xy23;
    for (uint32_t t = 0; t < of.n; ++t) {
        near.move(of.time[t], static_cast<int32_t>(p.hit_window));
        const lane_position<float> last = of.last.at(t);
        list_pairs(
            pairs, t, near.begin, near.end,
            [&](uint32_t h) {
                const lane_position<float_wide> at = positions_from(places, h);
                const float_wide dx = at.x - last.x, dy = at.y - last.y, dz = at.z - last.z;
                return bits_where<wide_comparison::at_most>(dx * dx + dy * dy, in_all_lanes<float_wide>(square_xy)) &
                       bits_inside(dz, p.max_z23);
            },
            fit);
    }
    fit();
    for (uint32_t t = 0; t < of.whole_vectors(); ++t) {
        const bool has = of.layer3[t] != no_pixel;
        of.has_outer[t] = has ? 1.f : 0.f;
        if (!has) of.central.chi2[t] = of.alone.chi2[t];
        of.before.set(t, has ? of.last.at(t) : of.middle.at(t));
        of.from.set(t, has ? position_at(hits, of.layer3[t]) : of.last.at(t));
    }
}

/// Add recurling hits: those of layer 3, and of layer 2 where there is none.
template <typename Parameters>
inline void add_recurling_hits(const Parameters& p, track_block& of, const uint64_t* fitted, const hit_lanes& places,
                               hits_around (&near)[mu3e_groups], pair_list& pairs)
{
    const fit_errors errors = errors_of(p);
    const float max_z = p.max_recurl_z;
    helix_block helices;
    for (uint32_t t = 0; t < of.n; t += n_wide) {
        float_wide radius, turn;
        load_wide(radius, of.central.radius + t);
        load_wide(turn, of.turn + t);
        helices.set(t, helix_behind(loaded(of.before, t), loaded(of.from, t), radius, turn), p.max_recurl_xy);
    }
    for (uint32_t t = 0; t < of.n; ++t) of.recurl_chi2[t] = of.central.chi2[t] + p.max_chi2_recurl;
    const auto fit = [&] {
        for_fitted_pairs<true>(pairs, of, places, errors, of.before, of.from, of.central,
                               [&](uint32_t t, uint32_t hit, uint32_t l, const fitted_pairs& fits) {
                                   if (!(fits.chi2[l] < of.recurl_chi2[t])) return;
                                   of.recurl[t] = hit;
                                   of.recurl_chi2[t] = fits.chi2[l];
                                   of.recurl_radius[t] = fits.radius[l];
                               });
    };
    pair_list listed;
    const auto check = [&] { keep_near(listed, helices, places, max_z, pairs, fit); };
    for (uint32_t layer = 3; layer >= 2u; --layer) {
        for (uint32_t t = 0; t < of.n; ++t) {
            if (of.recurl[t] != no_pixel) continue;
            const uint32_t k = hit_of_triplet(fitted[t], 2), layer3 = of.layer3[t];
            const helix_bounds bounds = helices.bounds(t);
            for (uint32_t group = layer; group <= layer + mu3e_recurl_groups; group += mu3e_recurl_groups) {
                hits_around& of_group = near[group];
                of_group.move(of.time[t], static_cast<int32_t>(p.recurl_window));
                list_pairs(
                    listed, t, of_group.begin, of_group.end,
                    [&, bounds](uint32_t h) {
                        uint32_t bits = bounds.bits_inside_all(places, h, max_z);
                        if (k - h < n_wide) bits &= ~(1u << (k - h));
                        if (layer3 - h < n_wide) bits &= ~(1u << (layer3 - h));
                        return bits;
                    },
                    check);
            }
        }
        check();
        fit();
    }
}

/// Write the tracks of a block.
template <typename Parameters>
inline void write_tracks(const Parameters& p, const track_block& of, const event_hits& hits, const uint64_t* fitted,
                         mu3e_track* tracks)
{
    for (uint32_t begin = 0; begin < of.n; begin += n_wide) {
        float radius[n_wide], layers[n_wide];
        for (uint32_t l = 0; l < n_wide; ++l) {
            const uint32_t t = min_of(begin + l, of.n - 1u);
            radius[l] = of.recurl[t] == no_pixel ? of.central.radius[t] : of.recurl_radius[t];
            layers[l] = layers_before_arc(of.n_triplets(t), of.recurl[t]);
        }
        float_wide in_space, before, turn;
        load_wide(in_space, radius);
        load_wide(before, layers);
        load_wide(turn, of.turn + begin);
        const momentum_at_start<float_wide> momentum =
            momentum_of(p, loaded(of.first, begin), loaded(of.middle, begin), in_space, turn, before);
        for (uint32_t l = 0; l < n_wide && begin + l < of.n; ++l) {
            const uint32_t t = begin + l, recurl = of.recurl[t];
            tracks[t] = track_of(p, hits, fitted[t], {momentum.px[l], momentum.py[l], momentum.pz[l], momentum.size[l]},
                                 recurl == no_pixel ? of.central.chi2[t] : of.recurl_chi2[t], of.turn[t],
                                 of.n_triplets(t), of.layer3[t], recurl);
        }
    }
}

}  // namespace hlt

HLT_CPU_FORM(mu3e_extend_tracks)
{
    if constexpr (!hlt::compares_eight_lanes) return mu3e_extend_tracks(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const uint32_t n = p.mu3e_tracks.count[event], first = p.mu3e_tracks.first(event);
    if (n == 0u) return;
    const hlt::event_hits hits = hlt::hits_of_event(p, event);
    const hlt::fit_errors errors = hlt::errors_of(p);
    const uint32_t n_hits = hits.begin[hlt::mu3e_groups];
    hlt::hit_lanes places;
    std::memcpy(places.x, hits.x, n_hits * sizeof(float));
    std::memcpy(places.y, hits.y, n_hits * sizeof(float));
    std::memcpy(places.z, hits.z, n_hits * sizeof(float));
    hlt::hits_around outer(hits, 3),
        recurling[hlt::mu3e_groups] = {{hits, 0}, {hits, 1}, {hits, 2}, {hits, 3}, {hits, 4}, {hits, 5}};
    hlt::pair_list pairs;
    for (uint32_t begin = 0; begin < n; begin += hlt::tracks_at_once) {
        const uint64_t* const fitted = p.mu3e_tracks.fitted + first + begin;
        hlt::track_block block;
        block.n = hlt::min_of(n - begin, hlt::tracks_at_once);
        hlt::start_tracks(block, hits, fitted, errors);
        hlt::add_outer_hits(p, block, hits, places, outer, pairs);
        hlt::add_recurling_hits(p, block, fitted, places, recurling, pairs);
        hlt::write_tracks(p, block, hits, fitted, p.mu3e_tracks.track + first + begin);
    }
}
