// The common kernel by one thread: the lanes of a vector are the first hits of time windows. Only the hits in the
// windows of those with N7 are compared with others, each once.
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
        const uint32_t n_tested = hlt::min_of(n_own, n - p.min_hits + 1u);
        for (uint32_t first = 0; first < n_tested; first += hlt::n_wide) {
            const uint32_t begins = hlt::first_bits(n_tested - first) & window.begins_from(first);
            if (begins == 0u) continue;
            const hlt::wide_candidates of_lanes = window.candidates_from(first, begins);
            const hlt::int_wide& n_hits = of_lanes.hits;
            if ((begins & hlt::bits_of(n_hits > static_cast<int32_t>(hlt::km3net_max_tested))) != 0u)
                flags |= hlt::crowded;
            for (uint32_t left = of_lanes.found; left != 0u; left &= left - 1u) {
                const uint32_t l = hlt::lowest_bit(left);
                const auto lane = [l](const hlt::int_wide& values) { return static_cast<uint32_t>(values[l]); };
                const hlt::km3net_candidate found{
                    hlt::time_of_hit(hits[first + l]), lane(of_lanes.triggers), lane(n_hits), lane(of_lanes.pmts),
                    lane(of_lanes.causal_hits),        lane(of_lanes.charge)};
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
    }
    p.candidates.count[event] = hlt::min_of(n_found, hlt::km3net_max_candidates);
    p.windows.count[event] = n_windows;
    if (n_found > hlt::km3net_max_candidates) flags |= hlt::triggers_left_out;
    if (flags != 0u) p.events.flags[event] |= flags;
}
