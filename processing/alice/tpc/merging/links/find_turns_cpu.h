// The search for turns with ends in the lanes of vectors (wide_ends.h).
#pragma once

#include "alice/tpc/merging/links/find_turns.cuh"
#include "alice/tpc/merging/links/wide_ends.h"

HLT_CPU_FORM(tpc_find_turns)
{
    if constexpr (!hlt::compares_eight_lanes) return tpc_find_turns(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const uint32_t whole_event = p.event_of(event), first = p.tpc_tracks.first(whole_event);
    const hlt::tpc_turn_search find = hlt::turn_search_of(p, first);
    const hlt::wide_end_search near = hlt::end_search_of(p, whole_event, find.limits, find.max_chi2);
    const uint32_t n = p.tpc_tracks.count[whole_event], part = event - whole_event * hlt::tpc_merging_parts;
    const uint32_t end = n * (part + 1u) / hlt::tpc_merging_parts;
    hlt::wide_ends found[2];
    for (uint32_t place = n * part / hlt::tpc_merging_parts; place < end; ++place) {
        const uint32_t i = near.sorted[place], own_chain = find.chain_of(i);
        hlt::tpc_turn best{hlt::tpc_no_continuation, hlt::tpc_no_end};
        if (own_chain != hlt::tpc_no_end)
            near(i, p.tpc_tracks.bin[first + i], found,
                 [&](uint32_t own, uint32_t k) { find.take(best, own_chain, own, k); });
        p.tpc_tracks.turn_score[first + i] = best.score;
        p.tpc_tracks.turn_chain[first + i] = best.chain;
    }
}
