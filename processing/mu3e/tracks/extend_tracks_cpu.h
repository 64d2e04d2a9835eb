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

/// Bits of the hits from h on that is_near finds.
inline uint32_t bits_near(const leaving_helix<float>& helix, const hit_lanes& hits, uint32_t h, float max_xy,
                          float max_z)
{
    const lane_position<float_wide> at = positions_from(hits, h);
    const float_wide vx = at.x - helix.centre_x, vy = at.y - helix.centre_y, square = vx * vx + vy * vy;
    const float least = max_of(helix.radius - max_xy, 0.f), most = helix.radius + max_xy;
    const uint32_t inside = bits_where<wide_comparison::at_most>(square, in_all_lanes<float_wide>(most * most)) &
                            bits_where<wide_comparison::at_least>(square, in_all_lanes<float_wide>(least * least));
    if (inside == 0u) return 0u;
    const float_wide angle = angle_along(helix, at);
    const float_wide away = at.z - (angle * helix.radius * helix.slope + helix.z);
    return inside & bits_inside(away, max_z) &
           bits_where<wide_comparison::at_least>(angle, in_all_lanes<float_wide>(min_recurl_angle)) &
           bits_where<wide_comparison::at_most>(angle, in_all_lanes<float_wide>(max_recurl_angle));
}

/// List pairs of a track with those hits of a range whose bits bits_of_hits(h) sets; full() empties the list.
template <typename Bits, typename Full>
inline void list_pairs(pair_list& pairs, uint32_t t, uint32_t begin, uint32_t end, const Bits& bits_of_hits,
                       const Full& full)
{
    for (uint32_t h = begin; h < end; h += n_wide) {
        uint32_t bits = bits_of_hits(h) & first_bits(end - h);
        if (bits != 0u && pairs.n > pairs_at_once - n_wide) full();
        for (; bits != 0u; bits &= bits - 1u) {
            pairs.track[pairs.n] = static_cast<uint16_t>(t);
            pairs.hit[pairs.n++] = static_cast<uint16_t>(h + lowest_bit(bits));
        }
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
    leaving_helix<float> helices[tracks_at_once];
    for (uint32_t t = 0; t < of.n; t += n_wide) {
        float_wide radius, turn;
        load_wide(radius, of.central.radius + t);
        load_wide(turn, of.turn + t);
        const leaving_helix<float_wide> helix = helix_behind(loaded(of.before, t), loaded(of.from, t), radius, turn);
        for (uint32_t l = 0; l < n_wide; ++l)
            helices[t + l] = {helix.centre_x[l], helix.centre_y[l], helix.radius[l], helix.slope[l],
                              helix.from_x[l],   helix.from_y[l],   helix.z[l],      helix.turn[l]};
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
    for (uint32_t layer = 3; layer >= 2u; --layer) {
        for (uint32_t t = 0; t < of.n; ++t) {
            if (of.recurl[t] != no_pixel) continue;
            const uint32_t k = hit_of_triplet(fitted[t], 2), layer3 = of.layer3[t];
            for (uint32_t group = layer; group <= layer + mu3e_recurl_groups; group += mu3e_recurl_groups) {
                hits_around& of_group = near[group];
                of_group.move(of.time[t], static_cast<int32_t>(p.recurl_window));
                list_pairs(
                    pairs, t, of_group.begin, of_group.end,
                    [&](uint32_t h) {
                        uint32_t bits = bits_near(helices[t], places, h, p.max_recurl_xy, p.max_recurl_z);
                        if (k - h < n_wide) bits &= ~(1u << (k - h));
                        if (layer3 - h < n_wide) bits &= ~(1u << (layer3 - h));
                        return bits;
                    },
                    fit);
            }
        }
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
