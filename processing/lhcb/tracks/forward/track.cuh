// The search for the SciFi part of one VELO track, with or without UT hits (docs/physics/long-tracks.md).
//
// 1. Pairs of x hits and the nearest hits in the other x layers (x_hits.cuh).
// 2. Stereo hits that agree on a place in y (stereo_hits.cuh).
// 3. A fit of all hits with removal of outliers (fit.cuh), and the quality. The best candidate is kept.
#pragma once

#include "lhcb/tracks/forward/fit.cuh"
#include "lhcb/tracks/long/generated/long_types.h"

namespace hlt {

__device__ float squared(float x) { return x * x; }

/// The state at z_end_scifi of a fitted candidate.
struct scifi_state {
    float qop, x, y, tx, ty;
};

__device__ scifi_state state_of(const long_track_parameters& parameters, const velo_line& line,
                                const bend_at_kink& bend, const forward_fit& fit)
{
    constexpr float dz = z_end_scifi - z_scifi_reference;
    const float quadratic = fit.kink * bend.curvature + fit.curvature;
    return {s_of(parameters, line, bend) * c_per_gev_to_mev * parameters.polarity,
            line.x_at(z_end_scifi) + fit.kink * bend.lever(z_end_scifi) + fit.offset + fit.curvature * dz * dz,
            line.y_at(z_end_scifi) + line.ty * bend.y_change(z_end_scifi) + fit.shift + fit.slope_y * dz,
            line.tx + fit.kink + (2.f * quadratic + 3.f * fit.kink * bend.cubic * dz) * dz,
            line.ty * (1.f + fit.kink * bend.y_slope) + fit.slope_y};
}

/// Bid of a candidate for its hits: upper bits of its quality, then its place. Candidates without UT are last.
__device__ uint32_t bid_of(float quality, uint32_t slot, bool with_ut)
{
    return (__float_as_uint(quality) & 0xffff0000u) | slot | (with_ut ? 0u : first_bid_without_ut);
}

/// Share of each track in a limit of the event.
__device__ uint32_t track_share(uint32_t of_event, uint32_t n_tracks)
{
    constexpr uint32_t least = 32;
    return max_of(of_event / n_tracks, least);
}

/// Search for a track in the place `slot` of the candidates of its event, which begin at `first_candidate`.
/// `more(kink)` is added to the quality; candidates for which `may_use(candidate)` is false are skipped. `n_tracks`:
/// number of tracks of the event, which share its limits of pairs and candidates. `p`: the parameters of a kernel.
template <typename Parameters, typename More, typename MayUse>
__device__ void search_track(const Parameters& p, const scifi_event& hits, const velo_line& line,
                             const forward_hypothesis& where, uint32_t first_candidate, uint32_t slot, bool with_ut,
                             uint32_t n_tracks, float max_quality, const event_column<uint32_t>& owner,
                             const More& more, const MayUse& may_use)
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
    const bend_in_memory bend{track_bend(parameters, line)};
    const uint32_t to = first_candidate + slot;

    float best = max_quality;
    const auto complete = [&](x_candidate& candidate) {
        const bend_at_kink at = bend.at(candidate.kink);
        float shift;
        forward_fit fit;
        if (!add_stereo_hits(parameters, hits, line, at, where, half, stereo, p.min_hits, candidate, shift)) return;
        if (!fit_candidate(parameters, hits, line, at, where, errors, p.min_hits, shift, candidate, fit)) return;
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
        for (uint32_t layer = 0; layer < n_scifi_layers; ++layer)
            p.forward_candidates.hits[n_scifi_layers * to + layer] = candidate.hits[layer];
        p.forward_candidates.hit_count[to] = static_cast<uint8_t>(candidate.n_hits);
        p.forward_candidates.quality[to] = quality;
        p.forward_candidates.qop[to] = state.qop;
        p.forward_candidates.x[to] = state.x;
        p.forward_candidates.y[to] = state.y;
        p.forward_candidates.tx[to] = state.tx;
        p.forward_candidates.ty[to] = state.ty;
    };
    const auto n_stereo = [&](float kink, float offset) {
        return count_stereo_layers(parameters, hits, line, bend, where, half, stereo, kink, offset);
    };
    // The second pair of layers is for tracks without hits in layer 0 or 8.
#pragma unroll 1
    for (uint32_t seed = 0; seed < n_seeds && !(best < p.good_quality); ++seed)
        find_x_hits(x_seed(seed, parameters, line, bend, where, cuts), hits, bend, where, half, cuts, p.min_hits,
                    budget, n_stereo, complete);
    if (!(best < max_quality)) return;
    for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) {
        const uint32_t hit = p.forward_candidates.hits[n_scifi_layers * to + layer];
        if (hit != no_scifi_hit) atomicMin(&owner[hit], bid_of(best, slot, with_ut));
    }
}

}  // namespace hlt
