// Forward search of the VELO tracks that are not VELO-UT tracks, among hits that no candidate with UT uses
// (docs/physics/long-tracks.md).
//
// One block per event, one thread per VELO track. The range of kinks is that of a particle of min_p. Then follows the
// search of track.cuh.
//
// In:  velo_end.{x, y, tx, ty}, velo_tracks.{count, backward}, scifi_hits.{x, z, bins, cells}, long_track_parameters.
// Out: forward_candidates.* [VELO track], scifi_owner [SciFi hit].
// Bounds: as search_with_ut. Bids without UT are all higher than bids with UT, so the owners that a thread reads do not
// depend on the other threads.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/forward/generated/forward_search_without_ut.h"
#include "lhcb/tracks/forward/track.cuh"

HLT_KERNEL(forward_search_without_ut, __maxnreg__(128))
{
    const uint32_t event = blockIdx.x;
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
    if (threadIdx.x == 0 && n_velo_tracks > n_tracks)
        atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::overflow));
    const float most = 1.f / (hlt::c_per_gev_to_mev * p.min_p);
    for (uint32_t slot = threadIdx.x; slot < n_tracks; slot += blockDim.x) {
        const uint32_t velo_track = first_velo_track + slot;
        if (p.forward_candidates.ut_track[first_candidate + slot] != hlt::no_ut_track ||
            p.velo_tracks.backward[velo_track] != 0u)
            continue;
        const hlt::velo_line line{p.velo_end.x[velo_track], p.velo_end.y[velo_track], p.velo_end.tx[velo_track],
                                  p.velo_end.ty[velo_track]};
        if (!(line.tx * line.tx < p.max_tx * p.max_tx && line.ty * line.ty < p.max_ty * p.max_ty)) continue;
        const float one = hlt::kink_of(parameters, line, -most), other = hlt::kink_of(parameters, line, most);
        const hlt::forward_hypothesis where{hlt::min_of(one, other),
                                            hlt::max_of(one, other),
                                            0.f,
                                            0.f,
                                            0.f,
                                            {p.sigma_offset, p.sigma_offset_per_kink},
                                            {p.sigma_shift, p.sigma_shift_per_kink}};
        for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer)
            p.forward_candidates.ut_hits[hlt::n_ut_layers * (first_candidate + slot) + layer] = hlt::no_ut_hit;
        hlt::search_track(
            p, hits, line, where, first_candidate, slot, false, n_tracks, p.max_quality, owner,
            [](float) { return 0.f; },
            [&](const hlt::x_candidate& candidate) {
                uint32_t n_used = 0;
                for (uint32_t layer = 0; layer < hlt::n_scifi_layers; ++layer) {
                    const uint32_t hit = candidate.hits[layer];
                    n_used += hit != hlt::no_scifi_hit && owner[hit] < hlt::first_bid_without_ut;
                }
                return n_used <= p.max_used_hits;
            });
    }
}
