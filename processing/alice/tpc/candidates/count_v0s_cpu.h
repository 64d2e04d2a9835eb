// The number of candidates with partners of a track in the lanes of vectors (wide_v0_pairs.h).
#pragma once

#include "alice/tpc/candidates/count_v0s.cuh"
#include "alice/tpc/candidates/wide_v0_pairs.h"

HLT_CPU_FORM(tpc_count_v0s)
{
    if constexpr (!hlt::compares_eight_lanes) return tpc_count_v0s(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const uint32_t whole_event = p.event_of(event), part = event - whole_event * hlt::tpc_merging_parts;
    const uint32_t first = p.tpc_merged_tracks.first(whole_event), n = p.tpc_merged_tracks.count[whole_event];
    const hlt::tpc_v0_tracks of = hlt::v0_tracks_of(p, whole_event);
    const hlt::tpc_v0_limits limits = hlt::v0_limits_of(p);
    hlt::wide_v0_search search(limits, of);
    bool crowded = false;
    for (uint32_t i = part; i < n; i += hlt::tpc_merging_parts) {
        uint32_t n_candidates = 0;
        uint32_t* const kept = p.tpc_merged_tracks.v0_first_partners + (first + i) * hlt::tpc_kept_partners;
        if (of.is_positive(i)) {
            if (of.n_partners(i) > hlt::tpc_max_partners)
                crowded = true;
            else
                search.for_candidates(i, [&](const hlt::tpc_v0& found) {
                    if (n_candidates < hlt::tpc_kept_partners) kept[n_candidates] = found.negative;
                    ++n_candidates;
                });
        }
        p.tpc_merged_tracks.v0s_of_track[first + i] = static_cast<uint16_t>(n_candidates);
    }
    if (crowded) hlt::set_bits_between_blocks(&p.events.flags[whole_event], uint32_t{hlt::crowded_v0s});
}
