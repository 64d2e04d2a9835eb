// The search for the SciFi parts of VELO tracks on the CPU: track.cuh for some tracks at once, whose pairs and
// candidates are lanes of the same vectors.
#pragma once

#include "lhcb/tracks/forward/candidates_cpu.h"
#include "lhcb/tracks/forward/fit_cpu.h"
#include "lhcb/tracks/forward/stereo_cpu.h"
#include "lhcb/tracks/forward/track.cuh"

namespace hlt {

/// Data that the tracks of an event share.
struct forward_event {
    const scifi_event& hits;
    bool hits_ascend;

    explicit forward_event(const scifi_event& of_event)
        : hits(of_event), hits_ascend(hlt::hits_ascend(&of_event.x[0], &of_event.bins[0]))
    {
    }
};

/// One of the tracks.
struct forward_track {
    velo_line line;
    forward_hypothesis where;

    forward_track(const velo_tracks_in_lanes& of, uint32_t t)
        : line{of.line.x[t], of.line.y[t], of.line.tx[t], of.line.ty[t]},
          where{of.where.low[t],   of.where.high[t],      of.where.offset[t],  of.where.offset_per_kink[t],
                of.where.shift[t], of.where.sigma_offset, of.where.sigma_shift}
    {
    }
};

/// As search_track of track.cuh, for a group of tracks; search_track processes tracks whose windows do not ascend.
/// `more(t, kink)`: for the track in lane t.
template <typename Parameters, typename More, typename MayUse>
void search_tracks(const Parameters& p, const forward_event& event, const velo_tracks_in_lanes& tracks,
                   uint32_t first_candidate, bool with_ut, uint32_t n_tracks, float max_quality,
                   const event_column<uint32_t>& owner, const More& more, const MayUse& may_use)
{
    const hlt::long_track_parameters& parameters = *p.long_track_parameters;
    const scifi_event& hits = event.hits;
    const forward_cuts cuts{p.n_sigma, {p.x_window, p.x_window_per_kink}};
    const stereo_cuts stereo{p.stereo_margin, p.max_shift_spread};
    const fit_errors errors{p.sigma_hit * p.sigma_hit,
                            p.hit_scatter_per_kink,
                            {p.sigma_ty, p.sigma_ty_per_kink},
                            {p.sigma_curvature, p.sigma_curvature_per_kink},
                            p.max_hit_chi2};
    const track_bend_of<float_wide> bend(parameters, tracks.line);
    const uint_wide half =
        tracks.line.y_at(float_wide{} + z_scifi_reference) + tracks.where.shift >= 0.f ? uint_wide{} + 1u : uint_wide{};

    float best[n_wide];
    uint16_t best_hits[n_wide][n_scifi_layers];
    uint32_t left_pairs[n_wide], left_candidates[n_wide];
    for (uint32_t t = 0; t < n_wide; ++t) {
        best[t] = max_quality;
        left_pairs[t] = track_share(p.max_pairs, n_tracks);
        left_candidates[t] = track_share(p.max_candidates, n_tracks);
    }
    x_pair_list pairs;
    kept_pairs kept;
    candidate_list list;
    x_hit_sets sets;
    fits_in_lanes fits;
    uint32_t left_out = event.hits_ascend ? 0u : tracks.used;
    for (uint32_t seed_number = 0; seed_number < n_seeds; ++seed_number) {
        uint32_t wanted = tracks.used & ~left_out;
        for (uint32_t t = 0; t < n_wide; ++t)
            if (best[t] < p.good_quality || left_pairs[t] == 0u || left_candidates[t] == 0u) wanted &= ~(1u << t);
        if (wanted == 0u) break;
        const x_seed_of<float_wide> seed(seed_number, parameters, tracks.line, bend, tracks.where, cuts);
        const auto choose = [&](const x_candidate& candidate, const forward_fit& fit, uint32_t t) {
            const forward_track track(tracks, t);
            const forward_hypothesis& where = track.where;
            if (!may_use(candidate)) return;
            const float kink = fit.kink;
            const float quality =
                p.chi2_weight * fit.chi2 +
                p.missing_hit_penalty * static_cast<float>(n_scifi_layers - candidate.n_hits) +
                squared((fit.offset - where.offset - where.offset_per_kink * kink) / where.sigma_offset(kink)) +
                squared((fit.shift - where.shift) / where.sigma_shift(kink)) +
                squared(fit.slope_y / errors.slope_y(kink)) + p.quality_per_kink * (kink < 0.f ? -kink : kink) +
                more(t, kink);
            if (!(quality < best[t])) return;
            best[t] = quality;
            const auto of = [&](const bend_polynomial_of<float_wide>& function) {
                return bend_polynomial{
                    {function.a[0][t], function.a[1][t], function.a[2][t], function.a[3][t], function.a[4][t]}}(kink);
            };
            const bend_at_kink at_fit{kink,           of(bend.z_magnet), of(bend.curvature),
                                      of(bend.cubic), of(bend.y_shift),  of(bend.y_slope)};
            const scifi_state state = state_of(parameters, track.line, at_fit, fit);
            std::memcpy(best_hits[t], candidate.hits, sizeof best_hits[t]);
            const uint32_t to = first_candidate + tracks.slot[t];
            p.forward_candidates.hit_count[to] = static_cast<uint8_t>(candidate.n_hits);
            p.forward_candidates.qop[to] = state.qop;
            p.forward_candidates.x[to] = state.x;
            p.forward_candidates.y[to] = state.y;
            p.forward_candidates.tx[to] = state.tx;
            p.forward_candidates.ty[to] = state.ty;
        };
        const auto fit_candidates = [&] {
            const uint32_t fitted = fits.fit(parameters, hits, tracks, list, errors, p.min_hits);
            for (uint32_t these = fitted; these != 0u; these &= these - 1u) {
                const uint32_t l = lowest_bit(these);
                choose(fits.candidates[l], fits.fits[l], fits.track[l]);
            }
            fits.n = 0;
        };
        const auto complete = [&](x_candidate& candidate, const stereo_places& places, uint32_t lane, uint32_t i) {
            const uint32_t t = list.track[i];
            float shift;
            if (!add_stereo_hits(parameters, hits, places, lane, tracks.where.shift[t],
                                 tracks.where.sigma_shift(candidate.kink), half[t], stereo, p.min_hits, candidate,
                                 shift))
                return;
            fits.add(candidate, t, i, shift);
            if (fits.n == n_wide) fit_candidates();
        };
        const auto complete_candidates = [&] {
            find_nearest_hits(hits, half, seed.layers, cuts, p.min_hits, list, sets);
            complete_sets(parameters, hits, half, tracks.where.sigma_shift, seed.layers, stereo, p.min_hits, list, sets,
                          complete);
            if (fits.n != 0u) fit_candidates();
            list.n = 0;
        };
        const auto examine = [&] {
            keep_pairs(hits, tracks, half, seed, cuts, pairs, kept);
            add_candidates(parameters, hits, tracks, half, bend, seed, stereo, p.min_hits, kept, left_candidates, list,
                           complete_candidates);
        };
        first_hits_left firsts[n_wide];
        for (uint32_t these = wanted; these != 0u; these &= these - 1u) {
            const uint32_t t = lowest_bit(these);
            firsts[t] = first_hits_left(hits, seed, t, half[t]);
        }
        // The tracks take turns with some of their first hits each. So a track that has used its share of candidates
        // ends early, as in find_x_hits. At 40 collisions half of the tracks do, and most of their pairs come later.
        for (;;) {
            for (uint32_t these = wanted; these != 0u; these &= these - 1u) {
                const uint32_t t = lowest_bit(these);
                if (firsts[t].next >= firsts[t].end || left_pairs[t] == 0u || left_candidates[t] == 0u)
                    wanted &= ~(1u << t);
            }
            if (wanted == 0u) break;
            pairs.n = 0;
            for (uint32_t these = wanted; these != 0u; these &= these - 1u) {
                const uint32_t t = lowest_bit(these);
                if (find_pairs_in_cells(hits, seed, tracks.where.sigma_offset, t, half[t], firsts[t], left_pairs[t],
                                        left_candidates[t], pairs, examine))
                    continue;
                left_out |= 1u << t;
                wanted &= ~(1u << t);
            }
            examine();
        }
        complete_candidates();
    }
    for (uint32_t these = tracks.used; these != 0u; these &= these - 1u) {
        const uint32_t t = lowest_bit(these), slot = tracks.slot[t], to = first_candidate + slot;
        if ((left_out >> t & 1u) != 0u) {
            p.forward_candidates.hit_count[to] = 0;
            const forward_track track(tracks, t);
            search_track(
                p, hits, track.line, track.where, first_candidate, slot, with_ut, n_tracks, max_quality, owner,
                [&](float kink) { return more(t, kink); }, may_use);
            continue;
        }
        if (!(best[t] < max_quality)) continue;
        p.forward_candidates.quality[to] = best[t];
        for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) {
            const uint32_t hit = best_hits[t][layer];
            p.forward_candidates.hits[n_scifi_layers * to + layer] = static_cast<uint16_t>(hit);
            if (hit != no_scifi_hit) atomicMin(&owner[hit], bid_of(best[t], slot, with_ut));
        }
    }
}

}  // namespace hlt
