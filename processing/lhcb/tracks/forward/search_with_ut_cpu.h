// Forward search of the VELO-UT tracks on the CPU: the common kernel with tracks, pairs, candidates, layers and
// unknowns in lanes (track_cpu.h).
#pragma once

#include "lhcb/tracks/forward/search_with_ut.cuh"
#include "lhcb/tracks/forward/track_cpu.h"

HLT_CPU_FORM(forward_search_with_ut)
{
    using hlt::float_wide;
    if (!p.takes(event)) return;
    const hlt::long_track_parameters& parameters = *p.long_track_parameters;
    const uint32_t n_tracks = p.ut_tracks.count[event];
    if (n_tracks == 0u || p.scifi_hits.count[event] == 0u) return;
    const uint32_t first_scifi_hit = p.scifi_hits.first(event), first_ut_hit = p.ut_hits.first(event);
    const uint32_t first_track = p.ut_tracks.first(event), first_velo_track = p.velo_end.first(event);
    const uint32_t first_candidate = p.forward_candidates.first(event);
    const hlt::event_column<uint32_t> owner(p.scifi_hits.owner, first_scifi_hit);
    const hlt::scifi_event hits{{p.scifi_hits.x, first_scifi_hit},
                                {p.scifi_hits.z, first_scifi_hit},
                                {p.scifi_hits.bins, event * hlt::n_scifi_zones * hlt::scifi_bin_stride},
                                {p.scifi_hits.cells, event * hlt::scifi_cell_stride}};
    const hlt::forward_event shared(hits);
    const hlt::kink_error sigma_a{p.sigma_ut_a, p.sigma_ut_a_per_kink}, sigma_b{p.sigma_ut_b, p.sigma_ut_b_per_kink},
        sigma_c{p.sigma_ut_c, p.sigma_ut_c_per_kink};

    for (uint32_t group = 0; group < n_tracks; group += hlt::n_wide) {
        hlt::velo_tracks_in_lanes tracks;
        tracks.used = 0;
        float columns[5][hlt::n_wide] = {};
        float ut_hits[hlt::n_ut_layers][3][hlt::n_wide] = {};
        for (uint32_t l = 0; l < hlt::min_of(n_tracks - group, hlt::n_wide); ++l) {
            const uint32_t track = first_track + group + l, slot = p.ut_tracks.velo_track[track];
            tracks.slot[l] = slot;
            if (slot >= hlt::max_long_tracks) {
                p.events.flags[event] |= static_cast<uint32_t>(hlt::overflow);
                continue;
            }
            tracks.used |= 1u << l;
            const uint32_t velo_track = first_velo_track + slot;
            columns[0][l] = p.velo_end.x[velo_track];
            columns[1][l] = p.velo_end.y[velo_track];
            columns[2][l] = p.velo_end.tx[velo_track];
            columns[3][l] = p.velo_end.ty[velo_track];
            columns[4][l] = p.ut_tracks.qop[track];
            for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer) {
                const uint32_t number = p.ut_tracks.hits[hlt::n_ut_layers * track + layer], hit = first_ut_hit + number;
                if (number == hlt::no_ut_hit) continue;
                ut_hits[layer][0][l] = p.ut_hits.x[hit];
                ut_hits[layer][1][l] = p.ut_hits.z[hit];
                ut_hits[layer][2][l] = p.ut_hits.weight[hit];
            }
        }
        float_wide qop;
        hlt::load_wide(tracks.line.x, columns[0]);
        hlt::load_wide(tracks.line.y, columns[1]);
        hlt::load_wide(tracks.line.tx, columns[2]);
        hlt::load_wide(tracks.line.ty, columns[3]);
        hlt::load_wide(qop, columns[4]);
        const float_wide none{}, s = parameters.polarity * qop / hlt::c_per_gev_to_mev;
        const float_wide sign = s < 0.f ? none - 1.f : none + 1.f;
        const float_wide most = none + 1.f / (hlt::c_per_gev_to_mev * p.min_p);
        const auto kink_within = [&](const float_wide& bound) {
            return hlt::kink_of(parameters, tracks.line, hlt::max_of(-most, hlt::min_of(most, bound)));
        };
        const float_wide one = kink_within(s * p.qop_low - sign * p.qop_margin);
        const float_wide other = kink_within(s * p.qop_high + sign * p.qop_margin);
        hlt::forward_hypothesis_of<float_wide>& where = tracks.where;
        where.low = hlt::min_of(one, other);
        where.high = hlt::max_of(one, other);
        tracks.used &= hlt::bits_where<hlt::wide_comparison::less>(where.low, where.high);
        hlt::ut_residuals_of<float_wide> ut = hlt::fit_ut_residuals(parameters, tracks.line, [&](uint32_t layer) {
            hlt::ut_hit_of<float_wide> hit;
            hlt::load_wide(hit.x, ut_hits[layer][0]);
            hlt::load_wide(hit.z, ut_hits[layer][1]);
            hlt::load_wide(hit.weight, ut_hits[layer][2]);
            return hit;
        });
        hlt::set_bend_in_ut(parameters, tracks.line, sign * hlt::max_of(sign * s, none + hlt::smallest_probed_s), ut);
        where.offset = p.offset_of_ut * ut.a;
        where.offset_per_kink = -p.offset_of_ut * ut.a_per_kink;
        where.shift = p.shift_of_ut * ut.c;
        where.sigma_offset = {p.sigma_offset, p.sigma_offset_per_kink};
        where.sigma_shift = {p.sigma_shift, p.sigma_shift_per_kink};
        for (uint32_t these = tracks.used; these != 0u; these &= these - 1u) {
            const uint32_t l = hlt::lowest_bit(these), candidate = first_candidate + tracks.slot[l];
            p.forward_candidates.ut_track[candidate] = static_cast<uint16_t>(group + l);
            for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer)
                p.forward_candidates.ut_hits[hlt::n_ut_layers * candidate + layer] =
                    p.ut_tracks.hits[hlt::n_ut_layers * (first_track + group + l) + layer];
        }
        const auto of_ut = [&](uint32_t t, float kink) {
            const float a = ut.a[t] - ut.a_per_kink[t] * kink, b = ut.b[t] - ut.b_per_kink[t] * kink;
            return hlt::squared(a / sigma_a(kink)) + hlt::squared((b - p.ut_b_of_a * a) / sigma_b(kink)) +
                   hlt::squared(ut.c[t] / sigma_c(kink)) + ut.chi2[t] + p.missing_ut_hit_penalty * ut.n_missing[t];
        };
        hlt::search_tracks(p, shared, tracks, first_candidate, true, n_tracks, p.max_quality, owner, of_ut,
                           [](const hlt::x_candidate&) { return true; });
    }
}
