// The UT hits that continue each VELO track best (docs/physics/ut.md).
//
// Each track has a window in each of the four layers. Pairs of hits of layers 0 and 2, and of 3 and 1, define lines;
// close hits of the other two layers are added to a line. Continuations of at least three hits are fitted, the best one
// is kept, and its momentum is fitted.
// In:  velo_end.{x, y, tx, ty}, velo_tracks.{backward, count}, ut_hits, ut_geometry, ut_tables.
// Out: ut_candidates.{hit_count, hits, quality, qop, x, z, tx}, at the place of the VELO track.
// One block per event, threads stride over its VELO tracks.
// Bounds: a window has at most max_ut_window_hits hits, so a track has at most 2 max_ut_window_hits^2 pairs. The tracks
// of an event share max_pairs pairs equally; a track with more pairs flags its event and keeps the best continuation up
// to its share.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/ut/fits.cuh"
#include "lhcb/ut/generated/ut_search_tracks.h"

namespace hlt {

/// The best continuation so far: the index of its hit in the window of each layer, or no_ut_pick.
struct ut_continuation {
    float quality;
    ut_line line;
    uint32_t picks[n_ut_layers];
};

constexpr uint32_t no_ut_pick = 0xffffffff;
constexpr ut_continuation no_ut_continuation{3e38f, {}, {no_ut_pick, no_ut_pick, no_ut_pick, no_ut_pick}};

struct ut_search_limits {
    float max_slope_difference;
    float max_kink_distance;
    float max_distance;
    float three_hits_penalty;
    float max_chi2;
};

/// The lowest bits of a distance do not count: of equally near hits, the first one is taken.
constexpr uint32_t ut_pick_bits = 31;
static_assert(max_ut_window_hits <= ut_pick_bits);

/// The hit of a window nearest to the line through (z, u) with this slope, if it is near enough.
__device__ __forceinline__ uint32_t nearest_in_window(const ut_window& window, float u, float z, float slope,
                                                      float max_distance)
{
    uint32_t nearest = __float_as_uint(max_distance) & ~ut_pick_bits;
    for (uint32_t i = 0; i < window.n_hits; ++i) {
        const float distance = fabsf(u + slope * (window.z[i] - z) - window.u[i]);
        nearest = min_of(nearest, (__float_as_uint(distance) & ~ut_pick_bits) | (i + 1u));
    }
    return (nearest & ut_pick_bits) - 1u;
}

/// Bit k: the line through (z, u) and hit `first` + k, of ut_stride hits, can be the line of a particle.
__device__ __forceinline__ uint32_t ut_partners(const ut_window& window, uint32_t first, float u, float z,
                                                const ut_search_limits& limits)
{
    uint32_t bits = 0;
    for (uint32_t k = 0; k < min_of(window.n_hits - first, ut_stride); ++k) {
        const float dz = window.z[first + k] - z, du = window.u[first + k] - u, distance = fabsf(dz);
        const float at_kink = u * dz + du * (z_ut_kink - z);
        if (fabsf(du) <= limits.max_slope_difference * distance &&
            fabsf(at_kink) <= limits.max_kink_distance * distance)
            bits |= 1u << k;
    }
    return bits;
}

__device__ ut_points points_of(const ut_window* windows, const uint32_t* picks, const ut_hits_of_event& hits)
{
    ut_points points;
    points.n_hits = 0.f;
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const bool found = picks[layer] != no_ut_pick;
        const uint32_t i = found ? picks[layer] : 0u;
        points.n_hits += found ? 1.f : 0.f;
        points.u[layer] = found ? windows[layer].u[i] : 0.f;
        points.z[layer] = found ? windows[layer].z[i] : z_ut_kink;
        points.weight[layer] = found ? hits.weight[windows[layer].hit[i]] : 0.f;
    }
    return points;
}

/// The allowed lines through eight hits of one window, from `first` on, and eight of another: bit 8 i + j.
__device__ __forceinline__ uint64_t ut_pairs(const ut_window& window, uint32_t first, const ut_window& other,
                                             uint32_t first_other, const ut_search_limits& limits)
{
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < min_of(window.n_hits - first, ut_stride); ++i) {
        const uint64_t partners = ut_partners(other, first_other, window.u[first + i], window.z[first + i], limits);
        pairs |= partners << (ut_stride * i);
    }
    return pairs;
}

/// Try the line through hit `i` of layer a and hit `j` of b; c lies between them, d beyond b.
template <uint32_t a, uint32_t b, uint32_t c, uint32_t d>
__device__ __forceinline__ void try_ut_pair(const ut_window* windows, const ut_hits_of_event& hits,
                                            const ut_search_limits& limits, uint32_t i, uint32_t j,
                                            ut_continuation& best)
{
    const float u = windows[a].u[i], z = windows[a].z[i], other_u = windows[b].u[j], other_z = windows[b].z[j];
    const float slope = (other_u - u) / (other_z - z);
    uint32_t picks[n_ut_layers];
    picks[a] = i;
    picks[b] = j;
    picks[c] = nearest_in_window(windows[c], u, z, slope, limits.max_distance);
    picks[d] = nearest_in_window(windows[d], other_u, other_z, slope, limits.max_distance);
    const uint32_t n_missing = (picks[c] == no_ut_pick ? 1u : 0u) + (picks[d] == no_ut_pick ? 1u : 0u);
    const float penalty = n_missing == 0u ? 0.f : limits.three_hits_penalty;
    if (n_missing > 1u || penalty >= best.quality) return;
    const ut_line line = fit_ut_kink(points_of(windows, picks, hits));
    const float quality = line.chi2 + penalty;
    const bool better = (line.chi2 < limits.max_chi2) & (quality < best.quality);
    best.quality = better ? quality : best.quality;
    best.line.chi2 = better ? line.chi2 : best.line.chi2;
    best.line.u_kink = better ? line.u_kink : best.line.u_kink;
    best.line.slope = better ? line.slope : best.line.slope;
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer)
        best.picks[layer] = better ? picks[layer] : best.picks[layer];
}

/// Try the lines through hits of layers a and b, at most `left`; c lies between them, d beyond b. Returns false if
/// there are more.
template <uint32_t a, uint32_t b, uint32_t c, uint32_t d>
__device__ bool try_ut_pairs(const ut_window* windows, const ut_hits_of_event& hits, const ut_search_limits& limits,
                             uint32_t& left, ut_continuation& best)
{
    for (uint32_t i = 0; i < windows[a].n_hits; i += ut_stride) {
        for (uint32_t j = 0; j < windows[b].n_hits; j += ut_stride) {
            for (uint64_t pairs = ut_pairs(windows[a], i, windows[b], j, limits); pairs != 0u; pairs &= pairs - 1u) {
                if (left == 0u) return false;
                --left;
                const uint32_t pair = static_cast<uint32_t>(__ffsll(static_cast<long long>(pairs))) - 1u;
                try_ut_pair<a, b, c, d>(windows, hits, limits, i + pair / ut_stride, j + pair % ut_stride, best);
            }
        }
    }
    return true;
}

/// z (mm) of the last hit.
template <typename Real>
__device__ __forceinline__ Real z_of_last(const ut_points_of<Real>& points)
{
    Real z_last{};
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer)
        z_last = points.weight[layer] > 0.f ? max_of(z_last, points.z[layer]) : z_last;
    return z_last;
}

constexpr float ut_window_per_p = 4.0212e-5f;  // 1/(mm MeV): the bend of the field before the middle of the UT
constexpr float ut_y_per_deflection = 0.08f;
constexpr float max_ut_radius = 1200.f;  // mm
constexpr float min_ut_theta2 = 1e-12f;

__device__ const float* ut_layer_deflection(const ut_tables& tables, float ty)
{
    const uint32_t ty_step = static_cast<uint32_t>(100.f * fabsf(ty) + 0.5f);
    return tables.layer_deflection[min_of(ty_step, n_ut_ty_steps)];
}

template <typename Parameters>
__device__ ut_search_limits ut_search_limits_of(const Parameters& p)
{
    return {p.max_slope_difference, p.max_kink_distance, p.max_distance, p.three_hits_penalty, p.max_search_chi2};
}

template <typename Parameters>
__device__ ut_hits_of_event ut_hits_of(const Parameters& p, uint32_t event)
{
    const uint32_t first = p.ut_hits.first(event);
    return {{p.ut_hits.x, first},     {p.ut_hits.z, first},      {p.ut_hits.y_begin, first},
            {p.ut_hits.y_end, first}, {p.ut_hits.weight, first}, p.ut_hits.sector_offset + event * ut_sector_stride};
}

/// True if a VELO track reaches the UT outside the beam pipe. `p`: the parameters of the kernel.
template <typename Parameters>
__device__ __forceinline__ bool points_to_ut(const Parameters& p, const ut_seed& seed)
{
    const float x = seed.x + (ut_middle_z - z_velo_end) * seed.tx;
    const float y = seed.y + (ut_middle_z - z_velo_end) * seed.ty;
    const float radius2 = x * x + y * y;
    // Comparisons with nan are false.
    return (radius2 >= p.min_radius * p.min_radius) & (radius2 <= max_ut_radius * max_ut_radius) &
           (fabsf(seed.tx) <= p.max_tx) & (fabsf(seed.ty) <= p.max_ty);
}

/// Largest distance (mm) of the hits of a track from its straight line in the middle of the UT.
template <typename Parameters>
__device__ __forceinline__ float ut_tolerance(const Parameters& p, const ut_seed& seed)
{
    const float theta2 = max_of(seed.tx * seed.tx + seed.ty * seed.ty, min_ut_theta2);
    const float min_p = max_of(p.min_p, p.min_pt / sqrtf(theta2));
    return 1.f / (ut_window_per_p * min_of(p.sufficient_p, min_p));
}

/// Write the continuation of a track, if it is good enough. `p`: the parameters of the kernel.
template <typename Parameters>
__device__ void write_ut_candidate(const Parameters& p, uint32_t track, const ut_seed& seed, const ut_window* windows,
                                   const uint32_t* picks, float n_hits, float z_last, const ut_momentum& fit,
                                   float quality)
{
    if (!(fit.chi2 <= p.max_chi2)) return;
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const uint32_t pick = picks[layer];
        p.ut_candidates.hits[track * n_ut_layers + layer] =
            static_cast<uint16_t>(pick == no_ut_pick ? no_ut_hit : windows[layer].hit[pick]);
    }
    p.ut_candidates.hit_count[track] = static_cast<uint8_t>(n_hits);
    p.ut_candidates.quality[track] = quality;
    p.ut_candidates.qop[track] = fit.qop;
    p.ut_candidates.x[track] = seed.x + (z_last - z_velo_end) * seed.tx + fit.u_last;
    p.ut_candidates.z[track] = z_last;
    p.ut_candidates.tx[track] = seed.tx + fit.slope;
}

/// Search for the continuation of a VELO track, with at most `max_pairs` pairs. `p`: the parameters of the kernel.
template <typename Parameters>
__device__ void search_ut_track(const Parameters& p, const ut_hits_of_event& hits, const ut_search_limits& limits,
                                uint32_t event, uint32_t track, uint32_t max_pairs)
{
    const ut_geometry& geometry = *p.ut_geometry;
    const ut_tables& tables = *p.ut_tables;
    const ut_seed seed{p.velo_end.x[track], p.velo_end.y[track], p.velo_end.tx[track], p.velo_end.ty[track]};
    if (!points_to_ut(p, seed)) return;
    const float tolerance = ut_tolerance(p, seed);
    const float* const deflection = ut_layer_deflection(tables, seed.ty);
    ut_window windows[n_ut_layers];
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer)
        fill_ut_window(geometry, hits, seed, layer, tolerance / deflection[layer],
                       ut_y_per_deflection / deflection[layer], windows[layer]);

    ut_continuation best = no_ut_continuation;
    uint32_t left = max_pairs;
    bool all = try_ut_pairs<0, 2, 1, 3>(windows, hits, limits, left, best);
    // Continuations without layer 0 or 2, if they can still be better.
    if (best.quality > p.three_hits_penalty) all = try_ut_pairs<3, 1, 2, 0>(windows, hits, limits, left, best) && all;
    if (!all) atomicOr(&p.events.flags[event], static_cast<uint32_t>(overflow));
    if (!(best.quality < no_ut_continuation.quality)) return;

    const ut_points points = points_of(windows, best.picks, hits);
    const float z_last = z_of_last(points);
    const ut_momentum fit =
        fit_ut_momentum(geometry, ut_to_qop(tables, seed), seed.tx, seed.ty, points, best.line, z_last);
    write_ut_candidate(p, track, seed, windows, best.picks, points.n_hits, z_last, fit, best.quality);
}

}  // namespace hlt

HLT_KERNEL(ut_search_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const hlt::ut_hits_of_event hits = hlt::ut_hits_of(p, event);
    const hlt::ut_search_limits limits = hlt::ut_search_limits_of(p);
    const uint32_t first_track = p.velo_end.first(event), n_tracks = p.velo_tracks.count[event];
    const uint32_t max_pairs = p.max_pairs / hlt::max_of(n_tracks, 1u);

    for (uint32_t track = first_track + threadIdx.x; track < first_track + n_tracks; track += blockDim.x) {
        p.ut_candidates.hit_count[track] = 0;
        if (p.velo_tracks.backward[track] == 0u) hlt::search_ut_track(p, hits, limits, event, track, max_pairs);
    }
}
