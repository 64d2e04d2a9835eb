// Looking Forward, complete tracks: the long track that continues each VELO-UT track best
// (docs/physics/looking-forward.md). The steps of the thesis: extend missing x, search u/v windows, extend tracks u/v,
// quality filter length, fit, quality filter. The last two are those of the forward search.
//
// One block per event, one thread per VELO-UT track.
//
// In:  velo_end.{x, y, tx, ty}, ut_tracks.{count, velo_track, qop, hits, x_hit_count, x_hits}, ut_hits.{x, z, weight},
//      scifi_hits.{count, x, z, bins, cells}, long_track_parameters.
// Out: forward_candidates.* [VELO track], scifi_owner [SciFi hit]: the lowest bid of the candidates that use it.
// Bounds: 2 sets of x hits. A VELO track beyond max_long_tracks flags the event. Threads share only minima, so the
// result does not depend on their order.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/looking_forward/generated/looking_forward_complete_tracks.h"
#include "lhcb/tracks/looking_forward/prediction.cuh"

namespace hlt {

/// Change kink and offset of a curve to those of least squares of its x hits.
__device__ void fit_curve(const long_track_parameters& parameters, const scifi_event& hits, const bend_in_memory& bend,
                          const ut_prediction& track, const x_candidate& candidate, scifi_curve& curve)
{
    float n = 0.f, sl = 0.f, sll = 0.f, sd = 0.f, sld = 0.f;
    const float middle = curve.bend.lever(z_scifi_reference);
    for (uint32_t k = 0; k < n_scifi_x_layers; ++k) {
        const uint32_t hit = candidate.hits[x_layer(k)];
        if (hit == no_scifi_hit) continue;
        const float z = z_in_layer(parameters, track, x_layer(k));
        const float lever = curve.bend.lever(z) - middle, distance = hits.x[hit] - curve.x_at(track.line, z);
        n += 1.f;
        sl += lever;
        sll += lever * lever;
        sd += distance;
        sld += lever * distance;
    }
    const float change = (n * sld - sl * sd) / (n * sll - sl * sl);
    const float at_reference = curve.x_at(track.line, z_scifi_reference) + (sd - change * sl) / n;
    curve.bend = bend.at(curve.bend.kink + change);
    curve.offset =
        at_reference - track.line.x_at(z_scifi_reference) - curve.bend.kink * curve.bend.lever(z_scifi_reference);
}

/// The curve of the x hits of a candidate.
__device__ scifi_curve curve_of(const long_track_parameters& parameters, const scifi_event& hits,
                                const bend_in_memory& bend, const ut_prediction& track, const x_candidate& candidate)
{
    uint32_t first = n_scifi_x_layers, last = 0;
    for (uint32_t k = 0; k < n_scifi_x_layers; ++k) {
        if (candidate.hits[x_layer(k)] == no_scifi_hit) continue;
        first = min_of(first, k);
        last = k;
    }
    first = x_layer(first);
    last = x_layer(last);
    scifi_curve curve =
        scifi_curve_through(bend, track, hits.x[candidate.hits[first]], z_in_layer(parameters, track, first),
                            hits.x[candidate.hits[last]], z_in_layer(parameters, track, last));
    fit_curve(parameters, hits, bend, track, candidate, curve);
    return curve;
}

/// Step 7: the hits nearest to a curve in the x layers without a hit. Returns true if there are any.
__device__ bool extend_missing_x(const long_track_parameters& parameters, const scifi_event& hits,
                                 const ut_prediction& track, const scifi_curve& curve, float most,
                                 x_candidate& candidate)
{
    const uint32_t n_before = candidate.n_hits;
    for (uint32_t k = 0; k < n_scifi_x_layers; ++k) {
        const uint32_t layer = x_layer(k);
        if (candidate.hits[layer] != no_scifi_hit) continue;
        const float x = curve.x_at(track.line, z_in_layer(parameters, track, layer));
        candidate.hits[layer] = static_cast<uint16_t>(scifi_zone(hits, layer, track.half).nearest(x, most));
        candidate.n_hits += candidate.hits[layer] != no_scifi_hit;
    }
    return candidate.n_hits > n_before;
}

/// Steps 8 and 9: the hit nearest to the curve in the window of each stereo layer.
__device__ void extend_stereo(const long_track_parameters& parameters, const scifi_event& hits,
                              const ut_prediction& track, const scifi_curve& curve, const stereo_cuts& cuts,
                              x_candidate& candidate)
{
#pragma unroll 1
    for (uint32_t k = 0; k < n_scifi_stereo_layers; ++k) {
        const uint32_t layer = stereo_layer(k);
        float expected, window;
        expect_stereo_hit(track.line, curve.bend, track.where, cuts, curve.offset, parameters.layer_z[layer],
                          parameters.layer_dx_dy[layer], parameters.layer_dz_dy[layer], expected, window);
        candidate.hits[layer] = static_cast<uint16_t>(scifi_zone(hits, layer, track.half).nearest(expected, window));
        candidate.n_hits += candidate.hits[layer] != no_scifi_hit;
    }
}

/// The quality of the forward search with UT.
template <typename Parameters>
__device__ float quality_with_ut(const Parameters& p, const ut_prediction& track, const fit_errors& errors,
                                 const forward_fit& fit, uint32_t n_hits)
{
    const kink_error sigma_a{p.sigma_ut_a, p.sigma_ut_a_per_kink}, sigma_b{p.sigma_ut_b, p.sigma_ut_b_per_kink},
        sigma_c{p.sigma_ut_c, p.sigma_ut_c_per_kink};
    const float kink = fit.kink;
    const float a = track.ut.a - track.ut.a_per_kink * kink, b = track.ut.b - track.ut.b_per_kink * kink;
    return p.chi2_weight * fit.chi2 + p.missing_hit_penalty * static_cast<float>(n_scifi_layers - n_hits) +
           squared((fit.offset - track.where.offset - track.where.offset_per_kink * kink) /
                   track.where.sigma_offset(kink)) +
           squared((fit.shift - track.where.shift) / track.where.sigma_shift(kink)) +
           squared(fit.slope_y / errors.slope_y(kink)) + p.quality_per_kink * absolute(kink) +
           squared(a / sigma_a(kink)) + squared((b - p.ut_b_of_a * a) / sigma_b(kink)) +
           squared(track.ut.c / sigma_c(kink)) + track.ut.chi2 + p.missing_ut_hit_penalty * track.ut.n_missing;
}

}  // namespace hlt

HLT_KERNEL(looking_forward_complete_tracks, __maxnreg__(128))
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const hlt::long_track_parameters& parameters = *p.long_track_parameters;
    const uint32_t n_tracks = p.ut_tracks.count[event];
    if (n_tracks == 0u || p.scifi_hits.count[event] == 0u) return;
    const uint32_t first_scifi_hit = p.scifi_hits.first(event), first_track = p.ut_tracks.first(event);
    const hlt::event_column<uint32_t> owner(p.scifi_hits.owner, first_scifi_hit);
    const hlt::scifi_event hits{{p.scifi_hits.x, first_scifi_hit},
                                {p.scifi_hits.z, first_scifi_hit},
                                {p.scifi_hits.bins, event * hlt::n_scifi_zones * hlt::scifi_bin_stride},
                                {p.scifi_hits.cells, event * hlt::scifi_cell_stride}};
    const hlt::kink_error tolerance{p.x_tolerance, p.x_tolerance_per_kink};
    const hlt::stereo_cuts stereo{p.stereo_margin, 0.f};
    const hlt::fit_errors errors{p.sigma_hit * p.sigma_hit,
                                 p.hit_scatter_per_kink,
                                 {p.sigma_ty, p.sigma_ty_per_kink},
                                 {p.sigma_curvature, p.sigma_curvature_per_kink},
                                 p.max_hit_chi2};

    for (uint32_t t = threadIdx.x; t < n_tracks; t += blockDim.x) {
        const uint32_t track = first_track + t, slot = p.ut_tracks.velo_track[track];
        if (slot >= hlt::max_long_tracks) {
            atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::overflow));
            continue;
        }
        if (p.ut_tracks.x_hit_count[hlt::max_x_tracks * track] == 0u) continue;
        hlt::ut_prediction of_ut = hlt::predict_from_ut(p, event, t, slot);
        of_ut.where.sigma_offset = {p.sigma_offset, p.sigma_offset_per_kink};
        const hlt::bend_in_memory bend{hlt::track_bend(parameters, of_ut.line)};
        const uint32_t to = p.forward_candidates.first(event) + slot;
        float best = p.max_quality;
#pragma unroll 1
        for (uint32_t i = 0; i < hlt::max_x_tracks; ++i) {
            const uint32_t of_set = hlt::max_x_tracks * track + i;
            hlt::x_candidate candidate;
            candidate.n_hits = p.ut_tracks.x_hit_count[of_set];
            if (candidate.n_hits == 0u) break;
            for (uint32_t k = 0; k < hlt::n_scifi_x_layers; ++k)
                candidate.hits[hlt::x_layer(k)] = p.ut_tracks.x_hits[hlt::n_scifi_x_layers * of_set + k];
            hlt::scifi_curve curve = hlt::curve_of(parameters, hits, bend, of_ut, candidate);
            if (hlt::extend_missing_x(parameters, hits, of_ut, curve, tolerance(curve.bend.kink), candidate))
                hlt::fit_curve(parameters, hits, bend, of_ut, candidate, curve);
            hlt::extend_stereo(parameters, hits, of_ut, curve, stereo, candidate);
            if (candidate.n_hits < p.min_hits) continue;
            candidate.kink = curve.bend.kink;
            candidate.offset = curve.offset;
            hlt::forward_fit fit;
            if (!hlt::fit_candidate(parameters, hits, of_ut.line, curve.bend, of_ut.where, errors, p.min_hits,
                                    of_ut.where.shift, candidate, fit))
                continue;
            const float quality = hlt::quality_with_ut(p, of_ut, errors, fit, candidate.n_hits);
            if (!(quality < best)) continue;
            best = quality;
            const hlt::scifi_state state = hlt::state_of(parameters, of_ut.line, bend.at(fit.kink), fit);
            p.forward_candidates.ut_track[to] = static_cast<uint16_t>(t);
            for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer)
                p.forward_candidates.ut_hits[hlt::n_ut_layers * to + layer] =
                    p.ut_tracks.hits[hlt::n_ut_layers * track + layer];
            for (uint32_t layer = 0; layer < hlt::n_scifi_layers; ++layer)
                p.forward_candidates.hits[hlt::n_scifi_layers * to + layer] = candidate.hits[layer];
            p.forward_candidates.hit_count[to] = static_cast<uint8_t>(candidate.n_hits);
            p.forward_candidates.quality[to] = quality;
            p.forward_candidates.qop[to] = state.qop;
            p.forward_candidates.x[to] = state.x;
            p.forward_candidates.y[to] = state.y;
            p.forward_candidates.tx[to] = state.tx;
            p.forward_candidates.ty[to] = state.ty;
        }
        if (!(best < p.max_quality)) continue;
        for (uint32_t layer = 0; layer < hlt::n_scifi_layers; ++layer) {
            const uint32_t hit = p.forward_candidates.hits[hlt::n_scifi_layers * to + layer];
            if (hit != hlt::no_scifi_hit) atomicMin(&owner[hit], hlt::bid_of(best, slot, true));
        }
    }
}
