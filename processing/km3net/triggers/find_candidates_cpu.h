// The common kernel by one thread: a loop over the times of all hits, which the compiler makes a loop over vectors,
// finds those with N7, and only the hits in their time windows are compared with others, each once.
#pragma once

#include "km3net/triggers/hit_windows_cpu.h"

HLT_CPU_FORM(km3net_find_candidates)
{
    if (!p.takes(event)) return;
    const uint64_t* const hits = p.km3net_hits.hit + p.km3net_hits.first(event);
    const uint32_t n = p.km3net_hits.count[event];
    uint32_t flags = hlt::flags_of_place(p, event);
    const uint32_t n_own = (flags & hlt::margin) != 0u ? 0u : p.km3net_hits.own[event];
    hlt::km3net_candidate* const listed = p.candidates.candidate + p.candidates.first(event);
    hlt::km3net_window* const windows = p.windows.window + p.windows.first(event);
    uint32_t n_found = 0, n_windows = 0;
    if (n >= p.min_hits) {
        hlt::moving_window<km3net_find_candidates_parameters> window(p, hits, n);
        uint8_t begins[hlt::km3net_max_hits];
        const uint32_t n_tested = hlt::min_of(n_own, n - p.min_hits + 1u);
        const int32_t* const times = &window.time[0];
        const int32_t* const last = times + p.min_hits - 1u;
        const int32_t length = static_cast<int32_t>(p.time_window);
        for (uint32_t i = 0; i < n_tested; ++i) begins[i] = last[i] - times[i] < length ? 1 : 0;
        for (uint32_t i = 0; i < n_tested; ++i) {
            if (begins[i] == 0) continue;
            const hlt::km3net_candidate found = window.candidate_from(i);
            if (found.hits > hlt::km3net_max_tested) flags |= hlt::crowded;
            if (found.triggers == 0u) continue;
            if (n_found < hlt::km3net_max_candidates) listed[n_found] = found;
            ++n_found;
            const hlt::km3net_window next = hlt::window_of(found, p.padding);
            const bool starts = n_windows == 0u || next.start_ns > windows[n_windows - 1u].end_ns;
            if (starts && n_windows < hlt::km3net_max_windows) {
                windows[n_windows++] = next;
            } else {
                if (starts) flags |= hlt::windows_joined;
                hlt::join_windows(windows[n_windows - 1u], next);
            }
        }
    }
    p.candidates.count[event] = hlt::min_of(n_found, hlt::km3net_max_candidates);
    p.windows.count[event] = n_windows;
    if (n_found > hlt::km3net_max_candidates) flags |= hlt::triggers_left_out;
    if (flags != 0u) p.events.flags[event] |= flags;
}
