// V0 candidates: pairs of displaced tracks of opposite charge.
//
// In:  displaced tracks and their bins, v0s_of_track. Out: tpc_v0s, by the number of the positive track, then of the
// negative one. Bounds: one candidate for 128 clusters of the event, and 64 more; an event with more has the note
// many_v0s and those of its first tracks: candidates of a track are kept together. One block per event; threads stride
// over the merged tracks, and compute the candidates of those that have some again,
// from their partners if these are kept.
#pragma once

#include "alice/tpc/candidates/generated/tpc_find_v0s.h"
#include "alice/tpc/candidates/v0_pairs.cuh"
#include "alice/tpc/generated/tpc_flags.h"

namespace hlt {

/// The candidates of a track, by the number of the negative one.
struct v0_list {
    tpc_v0* candidates;
    uint32_t n = 0;

    __device__ void insert(const tpc_v0& found)
    {
        uint32_t at = n++;
        for (; at > 0u && candidates[at - 1u].negative > found.negative; --at) candidates[at] = candidates[at - 1u];
        candidates[at] = found;
    }
};

}  // namespace hlt

HLT_KERNEL(tpc_find_v0s)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t kept;
    if (threadIdx.x == 0) kept = 0;
    hlt::block_barrier();
    const uint32_t first = p.tpc_merged_tracks.first(event), n = p.tpc_merged_tracks.count[event];
    const uint32_t begin = p.tpc_v0s.first(event), room = p.tpc_v0s.first(event + 1u) - begin;
    const hlt::tpc_v0_tracks of = hlt::v0_tracks_of(p, event);
    const hlt::tpc_v0_limits limits = hlt::v0_limits_of(p);
    uint32_t running = 0;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        const uint32_t own = i < n ? p.tpc_merged_tracks.v0s_of_track[first + i] : 0u;
        uint32_t more;
        const uint32_t place = running + hlt::block_exclusive_sum(own, scratch, more);
        running += more;
        if (own == 0u || place + own > room) continue;
        hlt::v0_list found{p.tpc_v0s.v0 + begin + place};
        const auto insert = [&](const hlt::tpc_v0& candidate) { found.insert(candidate); };
        if (own <= hlt::tpc_kept_partners) {
            const uint32_t* const partners =
                p.tpc_merged_tracks.v0_first_partners + (first + i) * hlt::tpc_kept_partners;
            for (uint32_t k = 0; k < own; ++k) of.take_pair(limits, i, partners[k], insert);
        } else {
            of.for_candidates(limits, i, insert);
        }
        atomicMax(&kept, place + own);
    }
    hlt::block_barrier();
    if (threadIdx.x != 0) return;
    p.tpc_v0s.count[event] = kept;
    if (running > room) p.events.flags[event] |= uint32_t{hlt::many_v0s};
}
