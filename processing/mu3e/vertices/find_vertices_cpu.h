// The vertices of the common kernel by one thread, with the times of positrons in the lanes of a vector. Each helix and
// each crossing of a pair is computed once. Bounds: mu3e_max_tracks, mu3e_max_pairs, mu3e_max_vertices.
#pragma once

#include "framework/device/wide_lanes.h"
#include "mu3e/vertices/find_vertices.cuh"

namespace hlt {

/// Tracks of one charge that may belong to a vertex, with room behind the last one for a whole vector.
struct track_list {
    uint32_t n = 0;
    uint16_t track[mu3e_max_tracks];
    int32_t first[mu3e_max_tracks + n_wide], last[mu3e_max_tracks + n_wide];
    helix of[mu3e_max_tracks];

    inline void add(uint32_t t, const mu3e_track& added, float mev_per_mm)
    {
        track[n] = static_cast<uint16_t>(t);
        first[n] = static_cast<int32_t>(added.first);
        last[n] = static_cast<int32_t>(added.last);
        of[n++] = helix_of(added, mev_per_mm);
    }
    /// Call found(m) for each track from `begin` on whose hits, with those from `earliest` to `latest`, lie within
    /// time_window ns.
    template <typename Found>
    inline void for_together(uint32_t begin, int32_t earliest, int32_t latest, int32_t time_window,
                             const Found& found) const
    {
        for (uint32_t m = begin; m < n; m += n_wide) {
            int_wide firsts, lasts;
            load_wide(firsts, first + m);
            load_wide(lasts, last + m);
            // The spread of all hits is the largest of these four differences.
            const int_wide together =
                (lasts - firsts < time_window) & (lasts - earliest < time_window) & (latest - firsts < time_window);
            uint32_t bits = latest - earliest < time_window ? bits_of(together) & first_bits(n - m) : 0u;
            for (; bits != 0u; bits &= bits - 1u) found(m + lowest_bit(bits));
        }
    }
};

}  // namespace hlt

HLT_CPU_FORM(mu3e_find_vertices)
{
    if (!p.takes(event)) return;
    const uint32_t n = p.mu3e_tracks.own[event] != 0u ? p.mu3e_tracks.count[event] : 0u;
    const hlt::mu3e_track* const tracks = p.mu3e_tracks.track + p.mu3e_tracks.first(event);
    hlt::mu3e_vertex* const vertices = p.mu3e_vertices.vertex + p.mu3e_vertices.first(event);
    const int32_t time_window = static_cast<int32_t>(p.time_window);
    hlt::track_list electrons, positrons;
    for (uint32_t t = 0; t < n; ++t)
        if (tracks[t].hits >= p.min_hits)
            (tracks[t].charge < 0 ? electrons : positrons).add(t, tracks[t], p.mev_per_mm);
    uint32_t n_pairs = 0, n_vertices = 0;
    for (uint32_t e = 0; e < electrons.n; ++e) {
        const hlt::mu3e_track& electron = tracks[electrons.track[e]];
        positrons.for_together(0, electrons.first[e], electrons.last[e], time_window, [&](uint32_t a) {
            const hlt::mu3e_track& one = tracks[positrons.track[a]];
            if (hlt::share_hits(electron, one)) return;
            const hlt::crossing_points points = hlt::cross_circles(electrons.of[e], positrons.of[a], p.max_gap);
            if (!hlt::any_in_target(p, electrons.of[e], positrons.of[a], points)) return;
            if (++n_pairs > hlt::mu3e_max_pairs) return;  // nothing will be used
            const hlt::track_pair pair{electrons.track[e], positrons.track[a]};
            const int32_t earliest = hlt::min_of(electrons.first[e], positrons.first[a]),
                          latest = hlt::max_of(electrons.last[e], positrons.last[a]);
            positrons.for_together(a + 1u, earliest, latest, time_window, [&](uint32_t b) {
                if (static_cast<uint32_t>(hlt::min_of(earliest, positrons.first[b])) >= p.length) return;
                const hlt::mu3e_track& other = tracks[positrons.track[b]];
                if (hlt::share_hits(one, other) || hlt::share_hits(electron, other)) return;
                const hlt::helix of[3] = {positrons.of[a], positrons.of[b], electrons.of[e]};
                hlt::mu3e_vertex found;
                if (!hlt::vertex_near(p, tracks, pair, positrons.track[b], of, points, found)) return;
                if (n_vertices < hlt::mu3e_max_vertices) vertices[n_vertices] = found;
                ++n_vertices;
            });
        });
    }
    const bool too_many = n_pairs > hlt::mu3e_max_pairs;
    if (too_many) n_vertices = 0;
    uint32_t flags = too_many ? uint32_t{hlt::too_many_pairs} : 0u;
    const uint32_t n_listed = hlt::min_of(n_vertices, hlt::mu3e_max_vertices);
    p.mu3e_vertices.count[event] = n_listed;
    p.mu3e_windows.count[event] = hlt::make_windows(p, tracks, vertices, n_listed, n_vertices,
                                                    p.mu3e_windows.window + p.mu3e_windows.first(event), flags);
    if (flags != 0u) p.events.flags[event] |= flags;
}
