// The search for the SciFi part of one VELO track on the CPU: track.cuh with pairs, layers and unknowns in lanes.
#pragma once

#include "lhcb/forward/fit_cpu.h"
#include "lhcb/forward/pairs_cpu.h"
#include "lhcb/forward/stereo_cpu.h"
#include "lhcb/forward/track.cuh"

namespace hlt {

/// What the tracks of an event share.
struct forward_event {
    const scifi_event& hits;
    forward_tables tables;
    layer_lanes layers;
    bool hits_ascend;

    forward_event(const scifi_event& of_event, const long_track_parameters& parameters)
        : hits(of_event),
          tables(parameters),
          layers(parameters),
          hits_ascend(hlt::hits_ascend(&of_event.x[0], &of_event.bins[0]))
    {
    }
};

/// Calls `complete(candidate, bend, places)` as find_x_hits calls `complete(candidate)`; false if the pairs are not
/// those that it would have found.
template <typename Complete>
bool find_x_hits(const forward_event& event, const x_seed_lanes& seed, const velo_line& line, const bend_lanes& bend,
                 const forward_hypothesis& where, uint32_t half, const forward_cuts& cuts, const stereo_cuts& stereo,
                 uint32_t min_hits, forward_budget& left, const Complete& complete)
{
    const layer_seed layers = seed.layers;
    const scifi_event& hits = event.hits;
    pairs_with_places pairs;
    kept_pairs kept;
    return find_pairs_in_cells(hits, seed, where, half, pairs, [&](const pairs_with_places& found_pairs) {
        const uint32_t n_pairs = min_of(found_pairs.n, left.pairs);
        left.pairs -= n_pairs;
        keep_pairs(hits, seed, where, half, cuts, found_pairs, n_pairs, kept);
        for (uint32_t i = 0; i < kept.n; ++i) {
            const float kink = kept.kink[i], dx = kept.dx[i];
            const bend_at_kink at = bend.at(kink);
            const float offset = dx - kink * at.lever(seed.z_first) + where.offset;
            const stereo_places places(event.tables, line, at, where, stereo, offset);
            if (kept.n_layers[i] + places.count(hits, event.tables, half) < min_hits) continue;
            if (left.candidates == 0u) return false;
            --left.candidates;
            float place_of[8];
            const float8 others = seed.places(dx, kept.rise[i]);
            std::memcpy(place_of, &others, sizeof place_of);
            const float most = cuts.x_window(kink);
            uint32_t found[n_other_x_layers];
            uint32_t n_hits = 2;
            for (uint32_t k = 0; k < n_other_x_layers; ++k) {
                found[k] = scifi_zone(hits, layers.others[k], half).nearest(place_of[2u + k], most);
                n_hits += found[k] != no_scifi_hit ? 1u : 0u;
            }
            // One of the layers between is needed. The second seed finds again what the first has found.
            if (n_hits < 4u || (found[0] == no_scifi_hit && found[1] == no_scifi_hit) ||
                (layers.first != 0u && found[2] != no_scifi_hit && found[3] != no_scifi_hit))
                continue;
            x_candidate candidate;
            for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) candidate.hits[layer] = no_scifi_hit;
            candidate.hits[layers.first] = static_cast<uint16_t>(kept.hits[i] >> 16u);
            candidate.hits[layers.last] = static_cast<uint16_t>(kept.hits[i]);
            for (uint32_t k = 0; k < n_other_x_layers; ++k)
                candidate.hits[layers.others[k]] = static_cast<uint16_t>(found[k]);
            candidate.n_hits = n_hits;
            candidate.kink = kink;
            candidate.offset = offset;
            complete(candidate, at, places);
        }
        return left.pairs != 0u;
    });
}

/// As search_track of track.cuh, to which tracks are left whose windows do not ascend.
template <typename Parameters, typename More, typename MayUse>
void search_track(const Parameters& p, const forward_event& event, const bend_lanes& bend, const velo_line& line,
                  const forward_hypothesis& where, uint32_t first_candidate, uint32_t slot, bool with_ut,
                  uint32_t n_tracks, float max_quality, const event_column<uint32_t>& owner, const More& more,
                  const MayUse& may_use)
{
    const hlt::long_track_parameters& parameters = *p.long_track_parameters;
    const forward_cuts cuts{p.n_sigma, {p.x_window, p.x_window_per_kink}};
    forward_budget budget{track_share(p.max_pairs, n_tracks), track_share(p.max_candidates, n_tracks)};
    const stereo_cuts stereo{p.stereo_margin, p.max_shift_spread};
    const fit_errors errors{p.sigma_hit * p.sigma_hit,
                            p.hit_scatter_per_kink,
                            {p.sigma_ty, p.sigma_ty_per_kink},
                            {p.sigma_curvature, p.sigma_curvature_per_kink},
                            p.max_hit_chi2};
    const uint32_t half = line.y_at(z_scifi_reference) + where.shift >= 0.f ? 1u : 0u;
    const uint32_t to = first_candidate + slot;

    float best = max_quality;
    uint16_t best_hits[n_scifi_layers];
    const auto complete = [&](x_candidate& candidate, const bend_at_kink& at, const stereo_places& places) {
        float shift;
        forward_fit fit;
        if (!add_stereo_hits(event.hits, event.tables, places, where, where.sigma_shift(at.kink), half, stereo,
                             p.min_hits, candidate, shift))
            return;
        if (!fit_candidate(event.layers, event.hits, line, at, where, errors, p.min_hits, shift, candidate, fit))
            return;
        if (!may_use(candidate)) return;
        const float kink = fit.kink;
        const float quality =
            p.chi2_weight * fit.chi2 + p.missing_hit_penalty * static_cast<float>(n_scifi_layers - candidate.n_hits) +
            squared((fit.offset - where.offset - where.offset_per_kink * kink) / where.sigma_offset(kink)) +
            squared((fit.shift - where.shift) / where.sigma_shift(kink)) + squared(fit.slope_y / errors.slope_y(kink)) +
            p.quality_per_kink * (kink < 0.f ? -kink : kink) + more(kink);
        if (!(quality < best)) return;
        best = quality;
        const scifi_state state = state_of(parameters, line, bend.at(kink), fit);
        std::memcpy(best_hits, candidate.hits, sizeof best_hits);
        p.forward_candidates.hit_count[to] = static_cast<uint8_t>(candidate.n_hits);
        p.forward_candidates.qop[to] = state.qop;
        p.forward_candidates.x[to] = state.x;
        p.forward_candidates.y[to] = state.y;
        p.forward_candidates.tx[to] = state.tx;
        p.forward_candidates.ty[to] = state.ty;
    };
    const bend_at_kink nodes[3] = {bend.at(where.low), bend.at(0.5f * (where.low + where.high)), bend.at(where.high)};
    bool same = event.hits_ascend;
    for (uint32_t seed = 0; same && seed < n_seeds && !(best < p.good_quality); ++seed)
        same = find_x_hits(event, x_seed_lanes(seed, event.tables, line, nodes, where, cuts), line, bend, where, half,
                           cuts, stereo, p.min_hits, budget, complete);
    if (!same) {
        p.forward_candidates.hit_count[to] = 0;
        search_track(p, event.hits, line, where, first_candidate, slot, with_ut, n_tracks, max_quality, owner, more,
                     may_use);
        return;
    }
    if (!(best < max_quality)) return;
    p.forward_candidates.quality[to] = best;
    for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) {
        const uint32_t hit = best_hits[layer];
        p.forward_candidates.hits[n_scifi_layers * to + layer] = static_cast<uint16_t>(hit);
        if (hit != no_scifi_hit) atomicMin(&owner[hit], bid_of(best, slot, with_ut));
    }
}

}  // namespace hlt
