// The vertices of the common kernel by one thread, with positrons in the lanes of a vector. Each helix and each
// crossing of a pair is computed once. Before circles are crossed, the times and heights of a vector of positrons are
// compared with those of an electron; before a vertex is fitted, those of second positrons with the crossing points of
// a pair. Bounds: mu3e_max_tracks, mu3e_max_pairs, mu3e_max_vertices.
#pragma once

#include "framework/device/wide_lanes.h"
#include "mu3e/vertices/find_vertices.cuh"

namespace hlt {

/// Points where the circles of a pair cross within the target, with their heights.
struct target_points {
    crossing_points at;
    float z[2];
};

template <typename Parameters>
inline target_points points_in_target(const Parameters& p, const helix& electron, const helix& positron)
{
    const crossing_points points = cross_circles(electron, positron, p.max_gap);
    target_points found{{{0.f, 0.f}, {0.f, 0.f}, 0}, {0.f, 0.f}};
    for (uint32_t s = 0; s < points.n; ++s) {
        float z;
        if (!cross_in_target(p, electron, positron, points.x[s], points.y[s], z)) continue;
        found.at.x[found.at.n] = points.x[s];
        found.at.y[found.at.n] = points.y[s];
        found.z[found.at.n++] = z;
    }
    return found;
}

/// Times of the hits of one or two tracks.
struct hit_times {
    int32_t first, last;
};

/// Tracks of one charge that may belong to a vertex, with room behind the last one for a whole vector.
struct track_list {
    uint32_t n = 0;
    uint16_t track[mu3e_max_tracks];
    int32_t first[mu3e_max_tracks + n_wide], last[mu3e_max_tracks + n_wide];
    float low[mu3e_max_tracks + n_wide], high[mu3e_max_tracks + n_wide];  // heights that comes_from can give
    float centre_x[mu3e_max_tracks + n_wide], centre_y[mu3e_max_tracks + n_wide], radius[mu3e_max_tracks + n_wide];
    float energy[mu3e_max_tracks + n_wide], pz[mu3e_max_tracks + n_wide];
    helix of[mu3e_max_tracks];

    template <typename Parameters>
    inline void add(const Parameters& p, uint32_t t, const mu3e_track& added)
    {
        track[n] = static_cast<uint16_t>(t);
        first[n] = static_cast<int32_t>(added.first);
        last[n] = static_cast<int32_t>(added.last);
        const helix found = helix_of(added, p.mev_per_mm);
        // Rounding keeps the order of heights, so these bounds are exact.
        const float one = found.z + found.slope * -p.max_path, other = found.z + found.slope * behind_hit;
        low[n] = min_of(one, other);
        high[n] = max_of(one, other);
        centre_x[n] = found.centre_x;
        centre_y[n] = found.centre_y;
        radius[n] = found.radius;
        energy[n] = energy_of(p, found);
        pz[n] = momentum_along_z(found);
        of[n++] = found;
    }
    inline hit_times times(uint32_t m) const { return {first[m], last[m]}; }
    /// Bits of the tracks from m on whose hits, with those of `others`, lie within time_window ns.
    inline uint32_t bits_together(uint32_t m, const hit_times& others, int32_t time_window) const
    {
        int_wide firsts, lasts;
        load_wide(firsts, first + m);
        load_wide(lasts, last + m);
        // The spread of all hits is the largest of these four differences.
        const int_wide together = (lasts - firsts < time_window) & (lasts - others.first < time_window) &
                                  (others.last - firsts < time_window);
        return others.last - others.first < time_window ? bits_of(together) & first_bits(n - m) : 0u;
    }
    /// Bits of the tracks from m on that can be at most max_apart mm above or below heights from `least` to `most`.
    inline uint32_t bits_at_height(uint32_t m, float least, float most, float max_apart) const
    {
        float_wide lows, highs;
        load_wide(lows, low + m);
        load_wide(highs, high + m);
        const float_wide limit = in_all_lanes<float_wide>(max_apart);
        return bits_where<wide_comparison::at_most>(lows - most, limit) &
               bits_where<wide_comparison::at_most>(least - highs, limit);
    }
    /// Bits of the tracks from m on whose circle is at most max_distance mm away from a point.
    inline uint32_t bits_at_point(uint32_t m, float x, float y, float max_distance) const
    {
        float_wide centres_x, centres_y, radii;
        load_wide(centres_x, centre_x + m);
        load_wide(centres_y, centre_y + m);
        load_wide(radii, radius + m);
        const float_wide vx = x - centres_x, vy = y - centres_y, away = square_root(vx * vx + vy * vy) - radii;
        const float_wide limit = in_all_lanes<float_wide>(max_distance);
        return bits_where<wide_comparison::at_most>(away, limit) & bits_where<wide_comparison::at_most>(-away, limit);
    }
    /// Bits of the tracks from m on that fulfil may_balance with positron a and electron e of `others`.
    template <typename Parameters>
    inline uint32_t bits_balanced(const Parameters& p, uint32_t m, const track_list& others, uint32_t a,
                                  uint32_t e) const
    {
        float_wide energies, along_z;
        load_wide(energies, energy + m);
        load_wide(along_z, pz + m);
        const float_wide error = energy[a] + energies + others.energy[e] - p.muon_mass,
                         sum = pz[a] + along_z + others.pz[e], window = in_all_lanes<float_wide>(p.energy_window),
                         most = in_all_lanes<float_wide>(p.max_sum * rounding_of_sum);
        return bits_where<wide_comparison::at_most>(error, window) &
               bits_where<wide_comparison::at_most>(-error, window) & bits_where<wide_comparison::at_most>(sum, most) &
               bits_where<wide_comparison::at_most>(-sum, most);
    }
    /// Call found(m) for each track from `begin` on whose bit bits(m) sets.
    template <typename Bits, typename Found>
    inline void for_bits(uint32_t begin, const Bits& bits_from, const Found& found) const
    {
        for (uint32_t m = begin; m < n; m += n_wide)
            for (uint32_t bits = bits_from(m); bits != 0u; bits &= bits - 1u) found(m + lowest_bit(bits));
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
        if (tracks[t].hits >= p.min_hits) (tracks[t].charge < 0 ? electrons : positrons).add(p, t, tracks[t]);
    uint32_t n_pairs = 0, n_vertices = 0;
    for (uint32_t e = 0; e < electrons.n; ++e) {
        const hlt::mu3e_track& electron = tracks[electrons.track[e]];
        const hlt::hit_times of_electron = electrons.times(e);
        const auto near_electron = [&](uint32_t m) {
            return positrons.bits_together(m, of_electron, time_window) &
                   positrons.bits_at_height(m, electrons.low[e], electrons.high[e], p.max_z_apart);
        };
        positrons.for_bits(0, near_electron, [&](uint32_t a) {
            const hlt::mu3e_track& one = tracks[positrons.track[a]];
            if (hlt::share_hits(electron, one)) return;
            const hlt::target_points points = hlt::points_in_target(p, electrons.of[e], positrons.of[a]);
            if (points.at.n == 0u) return;
            if (++n_pairs > hlt::mu3e_max_pairs) return;  // nothing will be used
            const hlt::track_pair pair{electrons.track[e], positrons.track[a]};
            const hlt::hit_times of_pair{hlt::min_of(of_electron.first, positrons.first[a]),
                                         hlt::max_of(of_electron.last, positrons.last[a])};
            const auto near_pair = [&](uint32_t m) {
                const uint32_t together =
                    positrons.bits_together(m, of_pair, time_window) & positrons.bits_balanced(p, m, electrons, a, e);
                uint32_t at_point = 0;
                for (uint32_t s = 0; s < points.at.n && together != 0u; ++s)
                    at_point |= positrons.bits_at_height(m, points.z[s], points.z[s], p.max_z_apart) &
                                positrons.bits_at_point(m, points.at.x[s], points.at.y[s], p.max_distance);
                return together & at_point;
            };
            positrons.for_bits(a + 1u, near_pair, [&](uint32_t b) {
                if (static_cast<uint32_t>(hlt::min_of(of_pair.first, positrons.first[b])) >= p.length) return;
                const hlt::mu3e_track& other = tracks[positrons.track[b]];
                if (hlt::share_hits(one, other) || hlt::share_hits(electron, other)) return;
                const hlt::helix of[3] = {positrons.of[a], positrons.of[b], electrons.of[e]};
                hlt::mu3e_vertex found;
                if (!hlt::vertex_near(p, tracks, pair, positrons.track[b], of, points.at, found)) return;
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
