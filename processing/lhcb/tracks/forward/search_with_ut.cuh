// Forward search of the VELO-UT tracks: the SciFi hits that continue each of them best (docs/physics/long-tracks.md).
//
// One block per event, one thread per track. The momentum of the VELO-UT track gives a range of kinks; its UT hits
// measure the scattering behind the VELO, which predicts the position behind the magnet (hypothesis.cuh). Then follows
// the search of track.cuh.
//
// In:  velo_end.{x, y, tx, ty}, ut_tracks.*, ut_hits.{x, z, weight}, scifi_hits.{count, x, z, bins, cells},
//      long_track_parameters.
// Out: forward_candidates.* [VELO track], scifi_owner [SciFi hit]: the lowest bid of the candidates that use it.
// Bounds: the tracks of an event share max_pairs pairs of hits and max_candidates sets of hits equally; a track that
// has used its share keeps the best candidate so far. 36 stereo hits. A VELO track beyond max_long_tracks flags the
// event. Threads share only minima, so the result does not depend on their order.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/forward/generated/forward_search_with_ut.h"
#include "lhcb/tracks/forward/track.cuh"
#include "lhcb/ut/generated/ut_types.h"

HLT_KERNEL(forward_search_with_ut, __maxnreg__(128))
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const hlt::long_track_parameters& parameters = *p.long_track_parameters;
    const uint32_t n_tracks = p.ut_tracks.count[event];
    if (n_tracks == 0u || p.scifi_hits.count[event] == 0u) return;
    const uint32_t first_scifi_hit = p.scifi_hits.first(event), first_ut_hit = p.ut_hits.first(event);
    const uint32_t first_track = p.ut_tracks.first(event), first_velo_track = p.velo_end.first(event);
    const hlt::event_column<uint32_t> owner(p.scifi_hits.owner, first_scifi_hit);
    const hlt::scifi_event hits{{p.scifi_hits.x, first_scifi_hit},
                                {p.scifi_hits.z, first_scifi_hit},
                                {p.scifi_hits.bins, event * hlt::n_scifi_zones * hlt::scifi_bin_stride},
                                {p.scifi_hits.cells, event * hlt::scifi_cell_stride}};
    const hlt::kink_error sigma_a{p.sigma_ut_a, p.sigma_ut_a_per_kink}, sigma_b{p.sigma_ut_b, p.sigma_ut_b_per_kink},
        sigma_c{p.sigma_ut_c, p.sigma_ut_c_per_kink};

    for (uint32_t t = threadIdx.x; t < n_tracks; t += blockDim.x) {
        const uint32_t track = first_track + t, slot = p.ut_tracks.velo_track[track];
        if (slot >= hlt::max_long_tracks) {
            atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::overflow));
            continue;
        }
        const uint32_t velo_track = first_velo_track + slot;
        const hlt::velo_line line{p.velo_end.x[velo_track], p.velo_end.y[velo_track], p.velo_end.tx[velo_track],
                                  p.velo_end.ty[velo_track]};
        const auto ut_hit_of = [&](uint32_t layer) -> hlt::ut_hit {
            const uint32_t hit = p.ut_tracks.hits[hlt::n_ut_layers * track + layer];
            if (hit == hlt::no_ut_hit) return {0.f, 0.f, 0.f};
            return {p.ut_hits.x[first_ut_hit + hit], p.ut_hits.z[first_ut_hit + hit],
                    p.ut_hits.weight[first_ut_hit + hit]};
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
        hlt::ut_residuals ut = hlt::fit_ut_residuals(parameters, line, ut_hit_of);
        hlt::set_bend_in_ut(parameters, line, sign * hlt::max_of(sign * s, hlt::smallest_probed_s), ut);
        where.offset = p.offset_of_ut * ut.a;
        where.offset_per_kink = -p.offset_of_ut * ut.a_per_kink;
        where.shift = p.shift_of_ut * ut.c;
        where.sigma_offset = {p.sigma_offset, p.sigma_offset_per_kink};
        where.sigma_shift = {p.sigma_shift, p.sigma_shift_per_kink};
        const uint32_t candidate = p.forward_candidates.first(event) + slot;
        p.forward_candidates.ut_track[candidate] = static_cast<uint16_t>(t);
        for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer)
            p.forward_candidates.ut_hits[hlt::n_ut_layers * candidate + layer] =
                p.ut_tracks.hits[hlt::n_ut_layers * track + layer];
        const auto of_ut = [&](float kink) {
            const float a = ut.a - ut.a_per_kink * kink, b = ut.b - ut.b_per_kink * kink;
            return hlt::squared(a / sigma_a(kink)) + hlt::squared((b - p.ut_b_of_a * a) / sigma_b(kink)) +
                   hlt::squared(ut.c / sigma_c(kink)) + ut.chi2 + p.missing_ut_hit_penalty * ut.n_missing;
        };
        hlt::search_track(p, hits, line, where, p.forward_candidates.first(event), slot, true, n_tracks, p.max_quality,
                          owner, of_ut, [](const hlt::x_candidate&) { return true; });
    }
}
