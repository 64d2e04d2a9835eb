// Long tracks of the forward search: candidates that are good and own their hits (docs/physics/long-tracks.md).
//
// A SciFi hit belongs to the best candidate that uses it; of equally good ones (to 7 bits of the mantissa) to the first.
// A candidate that owns too few of its hits is dropped: two VELO tracks that lie close would else both take the SciFi
// part of one of them.
//
// In:  forward_candidates.*, scifi_hits.count, ut_tracks.{count, velo_track, hits}.
// Out: long_tracks.*, in the order of the VELO-UT tracks, which is that of the VELO tracks.
// Scratch: owner [SciFi hit].
// One block per event; threads stride over hits, then over candidates. A minimum does not depend on the order of those
// who take part, and places are given by prefix sums. Bound: as many long tracks as VELO-UT tracks.
#pragma once

#include "lhcb/long_tracks/generated/long_tracks_select_forward.h"
#include "lhcb/long_tracks/generated/long_types.h"
#include "lhcb/scifi/generated/scifi_types.h"
#include "lhcb/ut/generated/ut_types.h"

HLT_KERNEL(long_tracks_select_forward)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];
    const uint32_t first_candidate = p.forward_candidates.first(event), first_ut_track = p.ut_tracks.first(event);
    const uint32_t first_long_track = p.long_tracks.first(event);
    const uint32_t n = p.ut_tracks.count[event];
    const hlt::event_column<uint32_t> owner(p.scratch.owner, p.scratch.first(event));
    const hlt::event_column<const uint16_t> hits(p.forward_candidates.hits, hlt::n_scifi_layers * first_candidate);
    const auto is_good = [&](uint32_t c) {
        return p.forward_candidates.hit_count[first_candidate + c] > 0u &&
               p.forward_candidates.quality[first_candidate + c] < p.max_quality;
    };
    const auto bid_of = [&](uint32_t c) {
        return (__float_as_uint(p.forward_candidates.quality[first_candidate + c]) & 0xffff0000u) | c;
    };

    if (n > 0u) {
        for (uint32_t i = threadIdx.x; i < p.scifi_hits.count[event]; i += blockDim.x) owner[i] = 0xffffffffu;
        hlt::block_barrier();
        for (uint32_t c = threadIdx.x; c < n; c += blockDim.x) {
            if (!is_good(c)) continue;
            for (uint32_t layer = 0; layer < hlt::n_scifi_layers; ++layer) {
                const uint32_t hit = hits[hlt::n_scifi_layers * c + layer];
                if (hit != hlt::no_scifi_hit) atomicMin(&owner[hit], bid_of(c));
            }
        }
        hlt::block_barrier();
    }
    uint32_t n_kept = 0;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t c = base + threadIdx.x;
        bool kept = false;
        if (c < n && is_good(c)) {
            uint32_t n_lost = 0;
            for (uint32_t layer = 0; layer < hlt::n_scifi_layers; ++layer) {
                const uint32_t hit = hits[hlt::n_scifi_layers * c + layer];
                n_lost += hit != hlt::no_scifi_hit && owner[hit] != bid_of(c);
            }
            const float n_hits = static_cast<float>(p.forward_candidates.hit_count[first_candidate + c]);
            kept = static_cast<float>(n_lost) <= p.max_shared_fraction * n_hits;
        }
        uint32_t n_of_round;
        const uint32_t before = hlt::block_exclusive_count(kept, sums, n_of_round);
        if (kept) {
            const uint32_t to = first_long_track + n_kept + before, from = first_candidate + c;
            const uint32_t ut_track = first_ut_track + c;
            p.long_tracks.velo_track[to] = p.ut_tracks.velo_track[ut_track];
            p.long_tracks.ut_track[to] = static_cast<uint16_t>(c);
            p.long_tracks.origin[to] = hlt::forward;
            p.long_tracks.qop[to] = p.forward_candidates.qop[from];
            p.long_tracks.x[to] = p.forward_candidates.x[from];
            p.long_tracks.y[to] = p.forward_candidates.y[from];
            p.long_tracks.tx[to] = p.forward_candidates.tx[from];
            p.long_tracks.ty[to] = p.forward_candidates.ty[from];
            p.long_tracks.quality[to] = p.forward_candidates.quality[from];
            p.long_tracks.hit_count[to] = p.forward_candidates.hit_count[from];
            for (uint32_t layer = 0; layer < hlt::n_scifi_layers; ++layer)
                p.long_tracks.hits[hlt::n_scifi_layers * to + layer] = hits[hlt::n_scifi_layers * c + layer];
            for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer)
                p.long_tracks.ut_hits[hlt::n_ut_layers * to + layer] =
                    p.ut_tracks.hits[hlt::n_ut_layers * ut_track + layer];
        }
        n_kept += n_of_round;
    }
    if (threadIdx.x == 0) p.long_tracks.count[event] = n_kept;
}
