// Candidates with partners of a track in the lanes of vectors (wide_v0_pairs.h).
#pragma once

#include "alice/tpc/candidates/find_v0s.cuh"
#include "alice/tpc/candidates/wide_v0_pairs.h"

HLT_CPU_FORM(tpc_find_v0s)
{
    if constexpr (!hlt::compares_eight_lanes) return tpc_find_v0s(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const uint32_t first = p.tpc_merged_tracks.first(event), n = p.tpc_merged_tracks.count[event];
    const uint32_t begin = p.tpc_v0s.first(event), room = p.tpc_v0s.first(event + 1u) - begin;
    const hlt::tpc_v0_tracks of = hlt::v0_tracks_of(p, event);
    const hlt::tpc_v0_limits limits = hlt::v0_limits_of(p);
    hlt::wide_v0_search search(limits, of);
    uint32_t running = 0, kept = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t own = p.tpc_merged_tracks.v0s_of_track[first + i], place = running;
        running += own;
        if (own == 0u || running > room) continue;
        hlt::v0_list found{p.tpc_v0s.v0 + begin + place};
        const auto insert = [&](const hlt::tpc_v0& candidate) { found.insert(candidate); };
        if (own <= hlt::tpc_kept_partners) {
            const uint32_t* const partners =
                p.tpc_merged_tracks.v0_first_partners + (first + i) * hlt::tpc_kept_partners;
            for (uint32_t k = 0; k < own; ++k) of.take_pair(limits, i, partners[k], insert);
        } else {
            search.for_candidates(i, insert);
        }
        kept = hlt::max_of(kept, running);
    }
    p.tpc_v0s.count[event] = kept;
    if (running > room) p.events.flags[event] |= uint32_t{hlt::many_v0s};
}
