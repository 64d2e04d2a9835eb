// Straight-line Kalman fit of the VELO tracks on the CPU: the steps of the common kernel with one track in each lane of
// a vector register. A group takes one step for each hit of its longest track, so tracks with about equal numbers of
// hits form a group.
#pragma once

#include "lhcb/velo/tracking/kalman_filter.cuh"

namespace hlt {

/// Hits of a group of tracks, [hit][track]. Rows below `rows` are filled, with zeros behind the last hit of a track.
struct kalman_group_hits {
    static constexpr uint32_t width = 16;

    uint32_t rows;
    uint32_t count[width];
    float x[max_velo_track_hits][width];
    float y[max_velo_track_hits][width];
    float z[max_velo_track_hits][width];

    bool has(uint32_t k, uint32_t t) const { return k < count[t]; }
    kalman_hit at(uint32_t k, uint32_t t) const { return {x[k][t], y[k][t], z[k][t]}; }

    /// Fill track t, whose count is set. `indices` are places of its hits in the columns `from_x`, `from_y` and
    /// `from_z`.
    void fill(uint32_t t, const uint16_t* indices, const float* from_x, const float* from_y, const float* from_z)
    {
        for (uint32_t k = 0; k < count[t]; ++k) {
            const uint32_t hit = indices[k];
            x[k][t] = from_x[hit];
            y[k][t] = from_y[hit];
            z[k][t] = from_z[hit];
        }
        for (uint32_t k = count[t]; k < rows; ++k) x[k][t] = y[k][t] = z[k][t] = 0.f;
    }
};

/// Number of tracks that are sorted together by their numbers of hits.
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
    constexpr uint32_t width = hlt::kalman_group_hits::width;
    const uint32_t first_hit = p.velo_hits.first(event), n_tracks = p.velo_tracks.count[event];
    const float* const hit_x = p.velo_hits.x + first_hit;
    const float* const hit_y = p.velo_hits.y + first_hit;
    const float* const hit_z = p.velo_hits.z + first_hit;
    const hlt::velo_beam_line beam_line(*p.velo_geometry);

    for (uint32_t base = 0; base < n_tracks; base += hlt::kalman_sorted_tracks) {
        const uint32_t first = p.velo_tracks.first(event) + base;
        const uint32_t n = hlt::min_of(n_tracks - base, hlt::kalman_sorted_tracks);
        const uint8_t* const hit_count = p.velo_tracks.hit_count + first;
        uint16_t order[hlt::kalman_sorted_tracks];
        hlt::order_by_hits(hit_count, n, order);
        for (uint32_t group = 0; group < n; group += width) {
            const uint32_t n_here = hlt::min_of(width, n - group);
            hlt::kalman_group_hits hits;
            hits.rows = hlt::max_of<uint32_t>(1u, hit_count[order[group + n_here - 1u]]);
            for (uint32_t t = 0; t < width; ++t) {
                const uint32_t track = order[group + hlt::min_of(t, n_here - 1u)];
                hits.count[t] = t < n_here ? hit_count[track] : 0;
                hits.fill(t, p.velo_tracks.hits + (first + track) * hlt::max_velo_track_hits, hit_x, hit_y, hit_z);
            }
            hlt::kalman_group<width> found;
            hlt::kalman_fit(hits, beam_line, found);
            for (uint32_t t = 0; t < n_here; ++t) hlt::kalman_write(p, first + order[group + t], found, t);
        }
    }
}
