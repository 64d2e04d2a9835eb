// The search for links with ends in the lanes of vectors (wide_ends.h).
#pragma once

#include "alice/tpc/merging/links/link_segments.cuh"
#include "alice/tpc/merging/links/wide_ends.h"

HLT_CPU_FORM(tpc_link_segments)
{
    if constexpr (!hlt::compares_eight_lanes) return tpc_link_segments(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const uint32_t whole_event = p.event_of(event), first = p.tpc_tracks.first(whole_event);
    const hlt::tpc_link_search find = hlt::link_search_of(p, first);
    const hlt::wide_end_search near = hlt::end_search_of(p, whole_event, find.limits, find.max_chi2);
    const uint32_t n = p.tpc_tracks.count[whole_event], part = event - whole_event * hlt::tpc_merging_parts;
    const uint32_t end = n * (part + 1u) / hlt::tpc_merging_parts;
    hlt::wide_ends found[2];
    for (uint32_t place = n * part / hlt::tpc_merging_parts; place < end; ++place) {
        const uint32_t i = near.sorted[place];
        hlt::tpc_best_end best[2];
        if (!find.clones.is_clone(i))
            near(i, p.tpc_tracks.bin[first + i], found,
                 [&](uint32_t own, uint32_t k) { best[own % 2u].take(find, near.ends, own, k); });
        p.tpc_tracks.best_end[2u * (first + i)] = best[0].end;
        p.tpc_tracks.best_end[2u * (first + i) + 1u] = best[1].end;
    }
}
