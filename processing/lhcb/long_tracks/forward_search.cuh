// Forward search: the SciFi hits that continue each VELO-UT track best (docs/physics/long-tracks.md).
//
// One block per event, one thread per VELO-UT track. A thread
// 1. makes the functions of the magnet for the slopes of its track, polynomials of the kink,
// 2. fits the UT hits relative to the line of the VELO: how the track was scattered, which foretells where it comes out
//    of the magnet, as a function of the kink (forward_hypothesis.cuh),
// 3. goes through pairs of x hits and the nearest hits in the other x layers (forward_x_hits.cuh),
// 4. adds stereo hits on whose place in y they agree (forward_stereo_hits.cuh),
// 5. fits all hits, takes off those that do not fit, and judges (forward_fit.cuh). The best candidate is kept.
//
// In:  velo_end.{x, y, tx, ty}, ut_tracks.*, ut_hits.{x, z, weight}, scifi_hits.{x, z, zone_offset},
//      long_track_parameters.
// Out: forward_candidates.* [VELO-UT track]: hit_count 0 for one without continuation.
// Bounds: max_pairs pairs of hits for a track, then it ends with the best candidate so far; 48 stereo hits.
// Threads share nothing, so the result does not depend on them.
#pragma once

#include "lhcb/long_tracks/forward_fit.cuh"
#include "lhcb/long_tracks/generated/long_tracks_forward_search.h"
#include "lhcb/long_tracks/generated/long_types.h"
#include "lhcb/ut/generated/ut_types.h"

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

}  // namespace hlt

HLT_KERNEL(long_tracks_forward_search)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const hlt::long_track_parameters& parameters = *p.long_track_parameters;
    const uint32_t first_scifi_hit = p.scifi_hits.first(event), first_ut_hit = p.ut_hits.first(event);
    const uint32_t first_track = p.ut_tracks.first(event), first_velo_track = p.velo_end.first(event);
    const uint32_t first_candidate = p.forward_candidates.first(event);
    const hlt::scifi_event hits{{p.scifi_hits.x, first_scifi_hit},
                                {p.scifi_hits.z, first_scifi_hit},
                                {p.scifi_hits.zone_offset, event * hlt::scifi_zone_stride}};
    const hlt::forward_cuts cuts{p.n_sigma, {p.x_window, p.x_window_per_kink}, p.max_pairs, p.min_hits};
    const hlt::stereo_cuts stereo{p.stereo_margin, p.max_shift_spread};
    const hlt::fit_errors errors{p.sigma_hit * p.sigma_hit,
                                 p.hit_scatter_per_kink,
                                 {p.sigma_ty, p.sigma_ty_per_kink},
                                 {p.sigma_curvature, p.sigma_curvature_per_kink},
                                 p.max_hit_chi2};
    const hlt::kink_error sigma_a{p.sigma_ut_a, p.sigma_ut_a_per_kink}, sigma_b{p.sigma_ut_b, p.sigma_ut_b_per_kink},
        sigma_c{p.sigma_ut_c, p.sigma_ut_c_per_kink};

    const uint32_t n_tracks = p.ut_tracks.count[event];
    for (uint32_t t = threadIdx.x; t < n_tracks; t += blockDim.x) {
        const uint32_t candidate_index = first_candidate + t, track = first_track + t;
        p.forward_candidates.hit_count[candidate_index] = 0;
        const uint32_t velo_track = first_velo_track + p.ut_tracks.velo_track[track];
        const hlt::velo_line line{p.velo_end.x[velo_track], p.velo_end.y[velo_track], p.velo_end.tx[velo_track],
                                  p.velo_end.ty[velo_track]};
        const auto ut_hit = [&](uint32_t layer, float& x, float& z, float& weight) {
            const uint32_t hit = p.ut_tracks.hits[hlt::n_ut_layers * track + layer];
            if (hit == hlt::no_ut_hit) return false;
            x = p.ut_hits.x[first_ut_hit + hit];
            z = p.ut_hits.z[first_ut_hit + hit];
            weight = p.ut_hits.weight[first_ut_hit + hit];
            return true;
        };
        const float s = parameters.polarity * p.ut_tracks.qop[track] / hlt::c_per_gev_to_mev;
        const float sign = s < 0.f ? -1.f : 1.f;
        const float most = 1.f / (hlt::c_per_gev_to_mev * p.min_p);
        const auto kink_within = [&](float bound) {
            return hlt::kink_of(parameters, line, hlt::max_of(-most, hlt::min_of(most, bound)));
        };
        const float one = kink_within(s * p.qop_low - sign * p.qop_margin);
        const float other = kink_within(s * p.qop_high + sign * p.qop_margin);
        hlt::forward_hypothesis where;
        where.low = hlt::min_of(one, other);
        where.high = hlt::max_of(one, other);
        if (!(where.low < where.high)) continue;
        hlt::ut_residuals ut = hlt::fit_ut_residuals(parameters, line, ut_hit);
        hlt::set_bend_in_ut(parameters, line, sign * hlt::max_of(sign * s, hlt::smallest_probed_s), ut);
        where.offset = p.offset_of_ut * ut.a;
        where.offset_per_kink = -p.offset_of_ut * ut.a_per_kink;
        where.shift = p.shift_of_ut * ut.c;
        where.sigma_offset = {p.sigma_offset, p.sigma_offset_per_kink};
        where.sigma_shift = {p.sigma_shift, p.sigma_shift_per_kink};
        const uint32_t half = line.y_at(hlt::z_scifi_reference) + where.shift >= 0.f ? 1u : 0u;
        const hlt::track_bend bend(parameters, line);

        float best = 3e38f;
        hlt::find_x_hits(parameters, hits, line, bend, where, half, cuts, [&](hlt::x_candidate& candidate) {
            const hlt::bend_at_kink at = bend.at(candidate.kink);
            float shift;
            if (!hlt::add_stereo_hits(parameters, hits, line, at, where, half, stereo, p.min_hits, candidate, shift))
                return;
            hlt::forward_fit fit;
            if (!hlt::fit_candidate(parameters, hits, line, at, where, errors, p.min_hits, shift, candidate, fit)) return;

            const float kink = fit.kink, size = kink < 0.f ? -kink : kink;
            const float a = ut.a - ut.a_per_kink * kink, b = ut.b - ut.b_per_kink * kink;
            const float quality =
                p.chi2_weight * fit.chi2 +
                p.missing_hit_penalty * static_cast<float>(hlt::n_scifi_layers - candidate.n_hits) +
                hlt::squared((fit.offset - where.offset - where.offset_per_kink * kink) / where.sigma_offset(kink)) +
                hlt::squared((fit.shift - where.shift) / where.sigma_shift(kink)) +
                hlt::squared(fit.slope_y / errors.slope_y(kink)) + p.quality_per_kink * size +
                hlt::squared(a / sigma_a(kink)) + hlt::squared((b - p.ut_b_of_a * a) / sigma_b(kink)) +
                hlt::squared(ut.c / sigma_c(kink)) + ut.chi2 +
                p.missing_ut_hit_penalty * static_cast<float>(hlt::n_ut_layers - ut.n_hits);
            if (!(quality < best)) return;
            best = quality;
            const hlt::scifi_state state = hlt::state_of(parameters, line, bend.at(kink), fit);
            for (uint32_t layer = 0; layer < hlt::n_scifi_layers; ++layer)
                p.forward_candidates.hits[hlt::n_scifi_layers * candidate_index + layer] = candidate.hits[layer];
            p.forward_candidates.hit_count[candidate_index] = static_cast<uint8_t>(candidate.n_hits);
            p.forward_candidates.quality[candidate_index] = quality;
            p.forward_candidates.qop[candidate_index] = state.qop;
            p.forward_candidates.x[candidate_index] = state.x;
            p.forward_candidates.y[candidate_index] = state.y;
            p.forward_candidates.tx[candidate_index] = state.tx;
            p.forward_candidates.ty[candidate_index] = state.ty;
        });
    }
}
