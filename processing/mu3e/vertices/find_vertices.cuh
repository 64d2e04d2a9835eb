// Vertices of two positrons and an electron, and the windows of time that are kept.
//
// All hits of the three triplets lie within time_window ns; the vertex belongs to the sub-slice of the first one. The
// circles of the electron and of one positron cross within the target; the other positron passes near the crossing
// point; the three are fitted to a vertex. Cuts: chi2, the energy near the mass of the muon, the sum of the momenta.
// In: tracks. Out: vertices by electron, first and second positron; windows; flags. One block per event. Threads take
// pairs of an electron and a positron, then each pair that crosses and all second positrons behind its first. Thread 0
// makes windows. Vertices are counted before they are written, so their order does not depend on the threads. The CPU
// form has a positron in each lane of a vector.
// Bounds: mu3e_max_tracks; mu3e_max_pairs: with more, none is used; mu3e_max_vertices, mu3e_max_windows.
#pragma once

#include "mu3e/hits/hit_banks.cuh"
#include "mu3e/vertices/generated/mu3e_find_vertices.h"
#include "mu3e/vertices/helix.cuh"

namespace hlt {

/// An electron and a positron, as places among the tracks.
struct track_pair {
    uint16_t electron, positron;
};

__device__ __forceinline__ bool share_hits(const mu3e_track& a, const mu3e_track& b)
{
    return a.pixel0 == b.pixel0 || a.pixel1 == b.pixel1 || a.pixel2 == b.pixel2;
}

__device__ __forceinline__ bool are_together(const mu3e_track& a, const mu3e_track& b, uint32_t time_window)
{
    return max_of(a.last, b.last) - min_of(a.first, b.first) < time_window;
}

/// mm behind the first hit up to which a track can still come from a point.
constexpr float behind_hit = 3.f;
/// A sum of momenta is at least its part along z, times less than this for the rounding of the root.
constexpr float rounding_of_sum = 1.001f;

/// Whether a track can come from a point: the arc to its first hit is not longer than max_path, and the point lies
/// before the hit. `z`: of the track there.
template <typename Parameters>
__device__ __forceinline__ bool comes_from(const Parameters& p, const helix& track, float x, float y, float& z)
{
    const float arc = arc_to(track, x, y);
    z = track.z + track.slope * arc;
    return arc <= behind_hit && -arc <= p.max_path;
}

/// Height at which two tracks cross in the transverse plane, if they cross within the target.
template <typename Parameters>
__device__ __forceinline__ bool cross_in_target(const Parameters& p, const helix& a, const helix& b, float x, float y,
                                                float& z)
{
    float za, zb;
    if (!(x * x + y * y <= p.max_radius * p.max_radius)) return false;
    if (!comes_from(p, a, x, y, za) || !comes_from(p, b, x, y, zb)) return false;
    z = 0.5f * (za + zb);
    const float apart = za - zb;
    return apart <= p.max_z_apart && -apart <= p.max_z_apart && z <= p.max_z && -z <= p.max_z;
}

template <typename Parameters>
__device__ __forceinline__ bool any_in_target(const Parameters& p, const helix& a, const helix& b,
                                              const crossing_points& points)
{
    float z;
    for (uint32_t s = 0; s < points.n; ++s)
        if (cross_in_target(p, a, b, points.x[s], points.y[s], z)) return true;
    return false;
}

template <typename Parameters>
__device__ bool is_pair(const Parameters& p, const mu3e_track& electron, const mu3e_track& positron)
{
    if (!are_together(electron, positron, p.time_window) || share_hits(electron, positron)) return false;
    const helix a = helix_of(electron, p.mev_per_mm), b = helix_of(positron, p.mev_per_mm);
    return any_in_target(p, a, b, cross_circles(a, b, p.max_gap));
}

/// Energy of the electron or positron of a helix, MeV.
template <typename Parameters>
__device__ __forceinline__ float energy_of(const Parameters& p, const helix& of)
{
    return sqrtf(of.momentum * of.momentum + p.electron_mass * p.electron_mass);
}

/// Whether three tracks can fulfil the cuts on energy and momentum. No fit changes an energy or a momentum along z, and
/// most sets of three random tracks fail here. `energy`: of the three, MeV.
template <typename Parameters>
__device__ __forceinline__ bool may_balance(const Parameters& p, const helix (&of)[3], float& energy)
{
    float pz = 0.f;
    energy = 0.f;
    for (const helix& each : of) {
        energy += energy_of(p, each);
        pz += momentum_along_z(each);
    }
    const float error = energy - p.muon_mass, most = p.max_sum * rounding_of_sum;
    return error <= p.energy_window && -error <= p.energy_window && pz <= most && -pz <= most;
}

/// The vertex of two positrons and an electron, whose helices are `of`, near one of the points where those of the
/// electron and of the first positron cross; false if there is none within the cuts.
template <typename Parameters>
__device__ bool vertex_near(const Parameters& p, const mu3e_track* tracks, const track_pair& pair, uint32_t second,
                            const helix (&of)[3], const crossing_points& points, mu3e_vertex& vertex)
{
    const mu3e_track one = tracks[pair.positron], other = tracks[second], electron = tracks[pair.electron];
    const uint32_t first = min_of(min_of(one.first, other.first), electron.first);
    const uint32_t last = max_of(max_of(one.last, other.last), electron.last);
    const vertex_errors errors{p.scattering, p.mev_per_mm, p.angle_error, p.hit_error};
    const target_cone target{p.target_radius, p.target_slope, p.target_error};
    fitted_vertex best{0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
    bool is_found = false;
    float energy;
    if (!may_balance(p, of, energy)) return false;
    for (uint32_t s = 0; s < points.n; ++s) {
        const float x = points.x[s], y = points.y[s];
        float z, of_other;
        // The distance first: it needs no angle, and most second positrons fail there.
        if (!(distance_to_circle(of[1], x, y) <= p.max_distance)) continue;
        if (!cross_in_target(p, of[2], of[0], x, y, z) || !comes_from(p, of[1], x, y, of_other)) continue;
        const float apart = of_other - z;
        if (!(apart <= p.max_z_apart && -apart <= p.max_z_apart)) continue;
        const fitted_vertex found = fit_vertex(of, x, y, z, errors, target);
        const bool is_better = !is_found || found.chi2 < best.chi2;
        if (!(found.chi2 <= p.max_chi2) || !is_better) continue;
        if (!(found.x * found.x + found.y * found.y <= p.max_radius * p.max_radius)) continue;
        if (!(found.z <= p.max_z && -found.z <= p.max_z)) continue;
        best = found;
        is_found = true;
    }
    if (!is_found) return false;
    const float square = best.px * best.px + best.py * best.py + best.pz * best.pz;
    const float momentum = sqrtf(square), mass = (energy - momentum) * (energy + momentum);
    if (!(momentum <= p.max_sum)) return false;
    vertex = {best.x,
              best.y,
              best.z,
              best.chi2,
              best.distance,
              energy,
              momentum,
              mass > 0.f ? sqrtf(mass) : 0.f,
              (one.time + other.time + electron.time) / 3.f,
              first,
              last,
              pair.positron,
              second,
              pair.electron};
    return true;
}

/// The vertex of a pair and a second positron; false if there is none within the cuts.
template <typename Parameters>
__device__ bool vertex_of(const Parameters& p, const mu3e_track* tracks, const track_pair& pair, uint32_t second,
                          mu3e_vertex& vertex)
{
    const mu3e_track one = tracks[pair.positron], other = tracks[second], electron = tracks[pair.electron];
    const uint32_t first = min_of(min_of(one.first, other.first), electron.first);
    const uint32_t last = max_of(max_of(one.last, other.last), electron.last);
    if (first >= p.length || last - first >= p.time_window) return false;
    if (share_hits(one, other) || share_hits(electron, other)) return false;
    const helix of[3] = {helix_of(one, p.mev_per_mm), helix_of(other, p.mev_per_mm), helix_of(electron, p.mev_per_mm)};
    return vertex_near(p, tracks, pair, second, of, cross_circles(of[2], of[0], p.max_gap), vertex);
}

/// The window of one vertex.
template <typename Parameters>
__device__ mu3e_window window_of(const Parameters& p, const mu3e_track* tracks, const mu3e_vertex& of)
{
    const mu3e_track of_tracks[3] = {tracks[of.track0], tracks[of.track1], tracks[of.track2]};
    const int32_t padding = static_cast<int32_t>(p.padding);
    const float error = of.energy - p.muon_mass;
    uint32_t lines = window_of_vertex | window_of_long_tracks | window_of_recurling_tracks, hits = 0;
    for (const mu3e_track& each : of_tracks) {
        if (each.hits < 4u) lines &= ~uint32_t{window_of_long_tracks};
        if (each.recurl == no_pixel) lines &= ~uint32_t{window_of_recurling_tracks};
        hits += each.hits;
    }
    return {static_cast<int32_t>(of.first) - padding,
            static_cast<int32_t>(of.last) + 1 + padding,
            lines,
            1,
            of.chi2,
            error < 0.f ? -error : error,
            of.momentum,
            hits};
}

__device__ void join_windows(mu3e_window& window, const mu3e_window& other)
{
    window.start_ns = min_of(window.start_ns, other.start_ns);
    window.end_ns = max_of(window.end_ns, other.end_ns);
    window.lines |= other.lines;
    window.vertices += other.vertices;
    window.chi2 = min_of(window.chi2, other.chi2);
    window.energy_error = min_of(window.energy_error, other.energy_error);
    window.momentum = min_of(window.momentum, other.momentum);
    window.hits = max_of(window.hits, other.hits);
}

/// The windows of n vertices, joined where they touch; returns their number. `all`: how many vertices there are. With
/// more than n, one window covers the times of all.
template <typename Parameters>
__device__ uint32_t make_windows(const Parameters& p, const mu3e_track* tracks, const mu3e_vertex* listed, uint32_t n,
                                 uint32_t all, mu3e_window* windows, uint32_t& flags)
{
    uint16_t order[mu3e_max_vertices];
    for (uint32_t v = 0; v < n; ++v) {
        uint32_t at = v;
        for (; at != 0u && listed[order[at - 1u]].first > listed[v].first; --at) order[at] = order[at - 1u];
        order[at] = static_cast<uint16_t>(v);
    }
    uint32_t n_windows = 0;
    for (uint32_t v = 0; v < n; ++v) {
        const mu3e_window next = window_of(p, tracks, listed[order[v]]);
        const bool starts = n_windows == 0u || (all == n && next.start_ns > windows[n_windows - 1u].end_ns);
        if (starts && n_windows < mu3e_max_windows) {
            windows[n_windows++] = next;
        } else {
            if (starts) flags |= windows_joined;
            join_windows(windows[n_windows - 1u], next);
        }
    }
    if (all != n) {
        const int32_t padding = static_cast<int32_t>(p.padding);
        windows[0].start_ns = -padding;
        windows[0].end_ns = static_cast<int32_t>(p.length + p.time_window) + padding;
        windows[0].vertices = all;
        flags |= vertices_left_out;
    }
    return n_windows;
}

}  // namespace hlt

HLT_KERNEL(mu3e_find_vertices)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint16_t electrons[hlt::mu3e_max_tracks], positrons[hlt::mu3e_max_tracks];
    __shared__ hlt::track_pair pairs[hlt::mu3e_max_pairs];
    const uint32_t n = p.mu3e_tracks.own[event] != 0u ? p.mu3e_tracks.count[event] : 0u;
    const hlt::mu3e_track* const tracks = p.mu3e_tracks.track + p.mu3e_tracks.first(event);
    hlt::mu3e_vertex* const vertices = p.mu3e_vertices.vertex + p.mu3e_vertices.first(event);
    uint32_t n_electrons = 0, n_positrons = 0, n_pairs = 0, n_vertices = 0;
    for (uint32_t begin = 0; begin < n; begin += blockDim.x) {
        const uint32_t t = begin + threadIdx.x;
        const bool used = t < n && tracks[t].hits >= p.min_hits;
        const bool negative = used && tracks[t].charge < 0, positive = used && tracks[t].charge > 0;
        uint32_t n_here;
        uint32_t at = n_electrons + hlt::block_exclusive_count(negative, scratch, n_here);
        n_electrons += n_here;
        if (negative) electrons[at] = static_cast<uint16_t>(t);
        at = n_positrons + hlt::block_exclusive_count(positive, scratch, n_here);
        n_positrons += n_here;
        if (positive) positrons[at] = static_cast<uint16_t>(t);
    }
    __syncthreads();
    const uint32_t n_tested = n_electrons * n_positrons;
    for (uint32_t begin = 0; begin < n_tested; begin += blockDim.x) {
        const uint32_t q = begin + threadIdx.x;
        hlt::track_pair pair{0, 0};
        bool is_pair = false;
        if (q < n_tested) {
            pair = {electrons[q / n_positrons], positrons[q % n_positrons]};
            is_pair = hlt::is_pair(p, tracks[pair.electron], tracks[pair.positron]);
        }
        uint32_t n_here;
        const uint32_t at = n_pairs + hlt::block_exclusive_count(is_pair, scratch, n_here);
        n_pairs += n_here;
        if (is_pair && at < hlt::mu3e_max_pairs) pairs[at] = pair;
    }
    __syncthreads();
    const bool too_many = n_pairs > hlt::mu3e_max_pairs;
    if (too_many) n_pairs = 0;
    for (uint32_t begin = 0; begin < n_pairs; begin += blockDim.x) {
        const uint32_t q = begin + threadIdx.x;
        uint32_t of_pair = 0;
        hlt::mu3e_vertex found;
        if (q < n_pairs)
            for (uint32_t b = 0; b < n_positrons; ++b)
                if (positrons[b] > pairs[q].positron && hlt::vertex_of(p, tracks, pairs[q], positrons[b], found))
                    ++of_pair;
        uint32_t n_here;
        uint32_t at = n_vertices + hlt::block_exclusive_sum(of_pair, scratch, n_here);
        n_vertices += n_here;
        for (uint32_t b = 0; b < n_positrons && of_pair != 0u; ++b)
            if (positrons[b] > pairs[q].positron && hlt::vertex_of(p, tracks, pairs[q], positrons[b], found)) {
                if (at < hlt::mu3e_max_vertices) vertices[at] = found;
                ++at;
                --of_pair;
            }
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    uint32_t flags = too_many ? uint32_t{hlt::too_many_pairs} : 0u;
    const uint32_t n_listed = hlt::min_of(n_vertices, hlt::mu3e_max_vertices);
    p.mu3e_vertices.count[event] = n_listed;
    p.mu3e_windows.count[event] = hlt::make_windows(p, tracks, vertices, n_listed, n_vertices,
                                                    p.mu3e_windows.window + p.mu3e_windows.first(event), flags);
    if (flags != 0u) p.events.flags[event] |= flags;
}
