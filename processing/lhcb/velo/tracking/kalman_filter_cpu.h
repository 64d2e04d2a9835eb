// Straight-line Kalman fit of the VELO tracks on the CPU: the common kernel, which has the steps, with tracks in groups
// of about equal numbers of hits. A group has as many steps as its longest track, and loops over hits end as foreseen.
#pragma once

#include "lhcb/velo/tracking/kalman_filter.cuh"

namespace hlt {

/// Tracks that are put in the order of their numbers of hits at once.
constexpr uint32_t kalman_sorted_tracks = 1024;

/// Numbers of n tracks in the order of their `hit_count`.
inline void order_by_hits(const uint8_t* hit_count, uint32_t n, uint16_t* order)
{
    uint16_t places[256] = {};
    for (uint32_t track = 0; track < n; ++track) ++places[hit_count[track]];
    uint32_t place = 0;
    for (uint32_t hits = 0; hits <= max_velo_track_hits; ++hits) {
        const uint32_t tracks = places[hits];
        places[hits] = static_cast<uint16_t>(place);
        place += tracks;
    }
    for (uint32_t track = 0; track < n; ++track) order[places[hit_count[track]]++] = static_cast<uint16_t>(track);
}

}  // namespace hlt

HLT_CPU_FORM(velo_kalman_filter)
{
    if (!p.takes(event)) return;
    constexpr uint32_t width = hlt::kalman_width;
    const uint32_t first_hit = p.velo_hits.first(event), n_tracks = p.velo_tracks.count[event];
    const float* const hit_x = p.velo_hits.x + first_hit;
    const float* const hit_y = p.velo_hits.y + first_hit;
    const float* const hit_z = p.velo_hits.z + first_hit;
    const float beamline_x = p.velo_geometry->beamline_x, beamline_y = p.velo_geometry->beamline_y;

    for (uint32_t base = 0; base < n_tracks; base += hlt::kalman_sorted_tracks) {
        const uint32_t first = p.velo_tracks.first(event) + base;
        const uint32_t n = hlt::min_of(n_tracks - base, hlt::kalman_sorted_tracks);
        const uint8_t* const hit_count = p.velo_tracks.hit_count + first;
        uint16_t order[hlt::kalman_sorted_tracks];
        hlt::order_by_hits(hit_count, n, order);
        for (uint32_t group = 0; group < n; group += width) {
            const uint32_t n_here = hlt::min_of(width, n - group);
            hlt::kalman_hits hits;
            hits.rows = hlt::max_of<uint32_t>(1u, hit_count[order[group + n_here - 1u]]);
            for (uint32_t t = 0; t < width; ++t) {
                const uint32_t track = order[group + hlt::min_of(t, n_here - 1u)];
                hits.count[t] = t < n_here ? hit_count[track] : 0;
                hlt::kalman_read(hits, t, p.velo_tracks.hits + (first + track) * hlt::max_velo_track_hits, hit_x, hit_y,
                                 hit_z);
            }
            hlt::kalman_group found;
            hlt::kalman_fit(hits, beamline_x, beamline_y, found);
            for (uint32_t t = 0; t < n_here; ++t) hlt::kalman_write(p, first + order[group + t], found, t);
        }
    }
}
