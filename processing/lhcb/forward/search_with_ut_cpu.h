// Forward search of the VELO-UT tracks on the CPU: the common kernel with the functions of the magnet, pairs, layers
// and unknowns in lanes (track_cpu.h).
#pragma once

#include "lhcb/forward/search_with_ut.cuh"
#include "lhcb/forward/track_cpu.h"

HLT_CPU_FORM(forward_search_with_ut)
{
    if (!hlt::compares_eight_lanes) return forward_search_with_ut(p, dim3{event, 1, 1});
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
    const hlt::forward_event shared(hits, parameters);
    const hlt::kink_error sigma_a{p.sigma_ut_a, p.sigma_ut_a_per_kink}, sigma_b{p.sigma_ut_b, p.sigma_ut_b_per_kink},
        sigma_c{p.sigma_ut_c, p.sigma_ut_c_per_kink};
    const float most = 1.f / (hlt::c_per_gev_to_mev * p.min_p);

    for (uint32_t t = 0; t < n_tracks; ++t) {
        const uint32_t track = first_track + t, slot = p.ut_tracks.velo_track[track];
        if (slot >= hlt::max_long_tracks) {
            p.events.flags[event] |= static_cast<uint32_t>(hlt::overflow);
            continue;
        }
        const uint32_t velo_track = first_velo_track + slot;
        const hlt::velo_line line{p.velo_end.x[velo_track], p.velo_end.y[velo_track], p.velo_end.tx[velo_track],
                                  p.velo_end.ty[velo_track]};
        const hlt::bend_lanes bend(shared.tables, line);
        const float s = parameters.polarity * p.ut_tracks.qop[track] / hlt::c_per_gev_to_mev;
        const float sign = s < 0.f ? -1.f : 1.f;
        const auto kink_within = [&](float bound) {
            return bend.kink_of(line, hlt::max_of(-most, hlt::min_of(most, bound)));
        };
        const float one = kink_within(s * p.qop_low - sign * p.qop_margin);
        const float other = kink_within(s * p.qop_high + sign * p.qop_margin);
        hlt::forward_hypothesis where;
        where.low = hlt::min_of(one, other);
        where.high = hlt::max_of(one, other);
        if (!(where.low < where.high)) continue;
        const uint32_t candidate = p.forward_candidates.first(event) + slot;
        hlt::ut_hit ut_hits[hlt::n_ut_layers];
        for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer) {
            const uint32_t number = p.ut_tracks.hits[hlt::n_ut_layers * track + layer], hit = first_ut_hit + number;
            ut_hits[layer] = number == hlt::no_ut_hit
                                 ? hlt::ut_hit{0.f, 0.f, 0.f}
                                 : hlt::ut_hit{p.ut_hits.x[hit], p.ut_hits.z[hit], p.ut_hits.weight[hit]};
            p.forward_candidates.ut_hits[hlt::n_ut_layers * candidate + layer] = static_cast<uint16_t>(number);
        }
        hlt::ut_residuals ut = hlt::fit_ut_residuals(parameters, line, [&](uint32_t layer) { return ut_hits[layer]; });
        bend.set_bend_in_ut(line, sign * hlt::max_of(sign * s, hlt::smallest_probed_s), ut);
        where.offset = p.offset_of_ut * ut.a;
        where.offset_per_kink = -p.offset_of_ut * ut.a_per_kink;
        where.shift = p.shift_of_ut * ut.c;
        where.sigma_offset = {p.sigma_offset, p.sigma_offset_per_kink};
        where.sigma_shift = {p.sigma_shift, p.sigma_shift_per_kink};
        p.forward_candidates.ut_track[candidate] = static_cast<uint16_t>(t);
        const auto of_ut = [&](float kink) {
            const float a = ut.a - ut.a_per_kink * kink, b = ut.b - ut.b_per_kink * kink;
            return hlt::squared(a / sigma_a(kink)) + hlt::squared((b - p.ut_b_of_a * a) / sigma_b(kink)) +
                   hlt::squared(ut.c / sigma_c(kink)) + ut.chi2 +
                   p.missing_ut_hit_penalty * static_cast<float>(hlt::n_ut_layers - ut.n_hits);
        };
        hlt::search_track(p, shared, bend, line, where, p.forward_candidates.first(event), slot, true, n_tracks,
                          p.max_quality, owner, of_ut, [](const hlt::x_candidate&) { return true; });
    }
}
