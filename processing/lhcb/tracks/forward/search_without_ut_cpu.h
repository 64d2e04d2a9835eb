// Forward search of the VELO tracks that are not VELO-UT tracks, on the CPU: the common kernel with tracks, pairs,
// candidates, layers and unknowns in lanes (track_cpu.h).
#pragma once

#include "lhcb/tracks/forward/search_without_ut.cuh"
#include "lhcb/tracks/forward/track_cpu.h"

HLT_CPU_FORM(forward_search_without_ut)
{
    using hlt::float_wide;
    if (!p.takes(event)) return;
    const hlt::long_track_parameters& parameters = *p.long_track_parameters;
    if (p.scifi_hits.count[event] == 0u) return;
    const uint32_t first_scifi_hit = p.scifi_hits.first(event), first_velo_track = p.velo_end.first(event);
    const uint32_t first_candidate = p.forward_candidates.first(event);
    const hlt::event_column<uint32_t> owner(p.scifi_hits.owner, first_scifi_hit);
    const hlt::scifi_event hits{{p.scifi_hits.x, first_scifi_hit},
                                {p.scifi_hits.z, first_scifi_hit},
                                {p.scifi_hits.bins, event * hlt::n_scifi_zones * hlt::scifi_bin_stride},
                                {p.scifi_hits.cells, event * hlt::scifi_cell_stride}};

    const uint32_t n_velo_tracks = p.velo_tracks.count[event];
    const uint32_t n_tracks = hlt::min_of(n_velo_tracks, hlt::max_long_tracks);
    if (n_velo_tracks > n_tracks) p.events.flags[event] |= static_cast<uint32_t>(hlt::overflow);
    if (n_tracks == 0u) return;
    const hlt::forward_event shared(hits);
    const float_wide none{}, most = none + 1.f / (hlt::c_per_gev_to_mev * p.min_p);
    const auto may_use = [&](const hlt::x_candidate& candidate) {
        uint32_t n_used = 0;
        for (uint32_t layer = 0; layer < hlt::n_scifi_layers; ++layer) {
            const uint32_t hit = candidate.hits[layer];
            n_used += hit != hlt::no_scifi_hit && owner[hit] < hlt::first_bid_without_ut;
        }
        return n_used <= p.max_used_hits;
    };
    for (uint32_t next = 0; next < n_tracks;) {
        hlt::velo_tracks_in_lanes tracks;
        float columns[4][hlt::n_wide] = {};
        uint32_t n = 0;
        for (; next < n_tracks && n < hlt::n_wide; ++next) {
            const uint32_t slot = next, velo_track = first_velo_track + slot;
            if (p.forward_candidates.ut_track[first_candidate + slot] != hlt::no_ut_track ||
                p.velo_tracks.backward[velo_track] != 0u)
                continue;
            const float tx = p.velo_end.tx[velo_track], ty = p.velo_end.ty[velo_track];
            if (!(tx * tx < p.max_tx * p.max_tx && ty * ty < p.max_ty * p.max_ty)) continue;
            columns[0][n] = p.velo_end.x[velo_track];
            columns[1][n] = p.velo_end.y[velo_track];
            columns[2][n] = tx;
            columns[3][n] = ty;
            tracks.slot[n++] = slot;
            for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer)
                p.forward_candidates.ut_hits[hlt::n_ut_layers * (first_candidate + slot) + layer] = hlt::no_ut_hit;
        }
        tracks.used = hlt::first_bits(n);
        hlt::load_wide(tracks.line.x, columns[0]);
        hlt::load_wide(tracks.line.y, columns[1]);
        hlt::load_wide(tracks.line.tx, columns[2]);
        hlt::load_wide(tracks.line.ty, columns[3]);
        const float_wide one = hlt::kink_of(parameters, tracks.line, -most),
                         other = hlt::kink_of(parameters, tracks.line, most);
        tracks.where = {hlt::min_of(one, other),
                        hlt::max_of(one, other),
                        none,
                        none,
                        none,
                        {p.sigma_offset, p.sigma_offset_per_kink},
                        {p.sigma_shift, p.sigma_shift_per_kink}};
        hlt::search_tracks(
            p, shared, tracks, first_candidate, false, n_tracks, p.max_quality, owner,
            [](uint32_t, float) { return 0.f; }, may_use);
    }
}
