// Long tracks of the forward search: candidates that own their hits (docs/physics/long-tracks.md).
//
// A SciFi hit belongs to the best candidate that uses it; candidates with UT precede those without. Of equally good
// ones (to 7 bits of the mantissa) the first one gets the hit. A candidate that owns too few of its hits is dropped:
// otherwise two close VELO tracks would both take the SciFi part of one of them.
//
// In:  forward_candidates.*, scifi_hits.owner, velo_tracks.count.
// Out: long_tracks.*, in the order of the VELO tracks.
// One block per event; threads stride over candidates; prefix sums give the places.
// Bounds: max_long_tracks VELO tracks are searched.
#pragma once

#include "lhcb/tracks/forward/generated/forward_select_tracks.h"
#include "lhcb/tracks/forward/track.cuh"
#include "lhcb/ut/generated/ut_types.h"

HLT_KERNEL(forward_select_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];
    const uint32_t first_candidate = p.forward_candidates.first(event), first_long_track = p.long_tracks.first(event);
    const uint32_t n = hlt::min_of(p.velo_tracks.count[event], hlt::max_long_tracks);
    const hlt::event_column<const uint32_t> owner(p.scifi_hits.owner, p.scifi_hits.first(event));
    const hlt::event_column<const uint16_t> hits(p.forward_candidates.hits, hlt::n_scifi_layers * first_candidate);

    uint32_t n_kept = 0;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t slot = base + threadIdx.x, from = first_candidate + slot;
        bool kept = false;
        if (slot < n && p.forward_candidates.hit_count[from] > 0u) {
            const bool with_ut = p.forward_candidates.ut_track[from] != hlt::no_ut_track;
            const uint32_t bid = hlt::bid_of(p.forward_candidates.quality[from], slot, with_ut);
            uint32_t n_lost = 0;
            for (uint32_t layer = 0; layer < hlt::n_scifi_layers; ++layer) {
                const uint32_t hit = hits[hlt::n_scifi_layers * slot + layer];
                n_lost += hit != hlt::no_scifi_hit && owner[hit] != bid;
            }
            const float n_hits = static_cast<float>(p.forward_candidates.hit_count[from]);
            kept = static_cast<float>(n_lost) <= p.max_shared_fraction * n_hits;
        }
        uint32_t n_of_round;
        const uint32_t before = hlt::block_exclusive_count(kept, sums, n_of_round);
        if (kept) {
            const uint32_t to = first_long_track + n_kept + before;
            const uint32_t ut_track = p.forward_candidates.ut_track[from];
            const bool with_ut = ut_track != hlt::no_ut_track;
            p.long_tracks.velo_track[to] = static_cast<uint16_t>(slot);
            p.long_tracks.ut_track[to] = static_cast<uint16_t>(ut_track);
            p.long_tracks.origin[to] = with_ut ? hlt::forward : hlt::forward_no_ut;
            p.long_tracks.qop[to] = p.forward_candidates.qop[from];
            p.long_tracks.x[to] = p.forward_candidates.x[from];
            p.long_tracks.y[to] = p.forward_candidates.y[from];
            p.long_tracks.tx[to] = p.forward_candidates.tx[from];
            p.long_tracks.ty[to] = p.forward_candidates.ty[from];
            p.long_tracks.quality[to] = p.forward_candidates.quality[from];
            p.long_tracks.hit_count[to] = p.forward_candidates.hit_count[from];
            for (uint32_t layer = 0; layer < hlt::n_scifi_layers; ++layer)
                p.long_tracks.hits[hlt::n_scifi_layers * to + layer] = hits[hlt::n_scifi_layers * slot + layer];
            for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer)
                p.long_tracks.ut_hits[hlt::n_ut_layers * to + layer] =
                    p.forward_candidates.ut_hits[hlt::n_ut_layers * from + layer];
        }
        n_kept += n_of_round;
    }
    if (threadIdx.x == 0) p.long_tracks.count[event] = n_kept;
}
